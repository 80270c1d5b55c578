"""Finds and aborts uploads in parts that a killed process has left in a store with an S3 interface.

Neither deltalake nor obstore can list them: the interface of their client has no such request. So this needs botocore,
which comes with the extra `s3`. Azure deletes such parts itself, and other stores have rules of the bucket for them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from resources.stores.store_options import store_options

NOT_INSTALLED = "botocore is not installed (the extra `s3` of penstock-etl has it)"
S3_SCHEMES = {"s3", "s3a"}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "endpoint_url": ("aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint"),
    "region_name": ("aws_region", "region", "aws_default_region", "default_region"),
    "aws_access_key_id": ("aws_access_key_id", "access_key_id"),
    "aws_secret_access_key": ("aws_secret_access_key", "secret_access_key"),
    "aws_session_token": ("aws_session_token", "aws_token", "session_token", "token"),
}
"""The arguments of botocore, and the options of the lake that say the same."""


class UploadsUnknown(Exception):
    """The store was not asked, or refused; the text says why."""


@dataclass(frozen=True, slots=True)
class UnfinishedUploads:
    """The uploads in parts to objects below a URI that began before a time, by key and id."""

    client: Any
    bucket: str
    uploads: tuple[tuple[str, str], ...]

    @classmethod
    def find(cls, uri: str, options: Mapping[str, str], *, before: datetime) -> Self | None:
        """Ask the store, with one request for each thousand uploads; None for a store without an S3 interface.

        Raises:
            UploadsUnknown: botocore is not installed, or the store refuses the request.
        """
        url = urlsplit(uri)
        if url.scheme not in S3_SCHEMES:
            return None
        client, prefix = s3_client(options), f"{unquote(url.path).strip('/')}/"
        with refusals():
            pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=url.netloc, Prefix=prefix)
            unfinished = (upload for page in pages for upload in page.get("Uploads", ()))
            old = tuple((upload["Key"], upload["UploadId"]) for upload in unfinished if upload["Initiated"] < before)
        return cls(client, url.netloc, old)

    def abort(self) -> None:
        """Let the store delete the parts. A process that still writes one of these objects fails.

        Raises:
            UploadsUnknown: the store refuses a request.
        """
        with refusals():
            for key, upload_id in self.uploads:
                self.client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)


def s3_client(options: Mapping[str, str]) -> Any:
    """A client of botocore for the store with these options.

    Raises:
        UploadsUnknown: botocore is not installed.
    """
    try:
        from botocore.config import Config  # noqa: PLC0415 - an optional package, and slow to import
        from botocore.session import get_session  # noqa: PLC0415
    except ImportError:
        raise UploadsUnknown(NOT_INSTALLED) from None
    resolved = {name.lower(): value for name, value in store_options(options).items()}
    arguments = {
        argument: next(resolved[name] for name in names if name in resolved)
        for argument, names in _NAMES.items()
        if any(name in resolved for name in names)
    }
    is_virtual = resolved.get("aws_virtual_hosted_style_request", resolved.get("virtual_hosted_style_request", "false"))
    style = "virtual" if is_virtual.lower() == "true" else "path" if "endpoint_url" in arguments else "auto"
    config = Config(s3={"addressing_style": style}, connect_timeout=10, read_timeout=30)
    with refusals():
        return get_session().create_client("s3", config=config, **arguments)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the errors of botocore inside a `with` block into UploadsUnknown."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an optional package

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        raise UploadsUnknown(f"the store answers {code or 'with an error'}") from error
    except (BotoCoreError, ValueError) as error:
        raise UploadsUnknown(f"the request failed ({type(error).__name__})") from error
