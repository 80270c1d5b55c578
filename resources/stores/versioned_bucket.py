"""Asks a store with an S3 interface whether its bucket keeps old versions of objects, also of deleted ones."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from resources.stores.unfinished_uploads import S3_SCHEMES, UploadsUnknown, refusals, s3_client

_CHECK = "check whether the store keeps old versions, or deleted objects for some time"


def versions_of_bucket(uri: str, options: Mapping[str, str]) -> str:
    """A sentence about old versions of what is below a URI."""
    url = urlsplit(uri)
    if url.scheme not in S3_SCHEMES:
        return "snapshots of the disk may have deleted files" if not url.scheme else _CHECK
    try:
        client = s3_client(options)
        with refusals():
            status = client.get_bucket_versioning(Bucket=url.netloc).get("Status")
    except UploadsUnknown as error:
        return f"{_CHECK}: {error}"
    if status is None:
        return "the bucket keeps no old versions of objects"
    return f"versioning of the bucket is {status.lower()}: old versions stay until a rule of the bucket deletes them"
