"""The number of requests of a load in S3 of moto, and uploads that were never completed."""

import sys
from datetime import timedelta

import pytest

from pipelines.maintenance.clean import CleanResult, clean
from resources.stores.lake_marker import use_lake
from resources.stores.object_client import PART_BYTES, ObjectWriter, object_client
from resources.stores.unfinished_uploads import NOT_INSTALLED, s3_client
from resources.stores.versioned_bucket import versions_of_bucket
from tests.stores.proxy import FaultProxy
from tests.stores.stored_topic import StoredTopic

pytestmark = pytest.mark.slow  # servers of stores

_MAX_OF_LOAD, _MAX_OF_FILE = 15, 3


def counted(topic: StoredTopic, proxied: FaultProxy) -> tuple[int, int]:
    """The requests of a load, and the files that it writes, with the checkpoint."""
    version, before = topic.version, len(proxied.requests)
    files = topic.load().files
    count = len(proxied.requests) - before
    return count, files + (topic.version // 10 > version // 10)


def test_a_load_sends_few_requests_at_any_number_of_commits(topic: StoredTopic, proxied: FaultProxy) -> None:
    """See test_store_requests.py for exact numbers and more versions."""  # fault L22
    topic.load()
    for _ in range(10):
        topic.grow(2)
        count, files = counted(topic, proxied)
        assert files in {2, 3}
        assert count <= _MAX_OF_LOAD + _MAX_OF_FILE * files
    assert topic.version == 11
    own_lake = topic.root.removeprefix("s3:/")
    assert not [
        request for request in proxied.requests if own_lake in request and "upload" in request.partition("?")[2]
    ]
    assert counted(topic, proxied) <= (_MAX_OF_LOAD, 0)
    topic.check()


def left_upload(topic: StoredTopic) -> None:
    """Send a part of a file, as a worker does that is killed then."""
    client = object_client(topic.table.uri, topic.table.lake.options)
    assert client is not None
    ObjectWriter(client, "date=2026-01-02/killed.parquet").write(b"x" * (2 * PART_BYTES))


def cleaned(topic: StoredTopic, *, keep: timedelta = timedelta(0), dry_run: bool = False) -> CleanResult:
    return clean(topic.table, keep=keep, target_bytes=2**20, dry_run=dry_run)


def test_clean_aborts_uploads_that_were_never_completed(
    topic: StoredTopic, proxied: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault L23
    if not topic.root.startswith("s3://"):
        left_upload(topic)
        assert cleaned(topic).uploads == 0
        return
    use_lake(topic.table.lake)
    topic.load()
    left_upload(topic)
    assert cleaned(topic, keep=timedelta(days=36_500)).uploads == 0  # in moto, all uploads began in 2010
    assert cleaned(topic, dry_run=True).uploads == 1
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    assert cleaned(topic).uploads_unknown == NOT_INSTALLED
    monkeypatch.undo()
    result = cleaned(topic)
    assert (result.uploads, result.uploads_unknown) == (1, "")
    assert cleaned(topic).uploads == 0
    topic.check()


def test_a_store_says_whether_its_bucket_keeps_old_versions(
    store_name: str, topic: StoredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault Y13
    options = topic.table.lake.options
    if store_name != "moto":
        assert versions_of_bucket(topic.table.uri, options)
        return
    uri, client = "s3://versioned/lake/main/clicks", s3_client(options)
    assert "check whether the store keeps old versions" in versions_of_bucket(uri, options)  # there is no such bucket
    client.create_bucket(Bucket="versioned")
    assert versions_of_bucket(uri, options) == "the bucket keeps no old versions of objects"
    for status in ("Enabled", "Suspended"):
        client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": status})
        assert f"versioning of the bucket is {status.lower()}: old versions stay" in versions_of_bucket(uri, options)
    monkeypatch.setitem(sys.modules, "botocore.config", None)
    assert NOT_INSTALLED in versions_of_bucket(uri, options)
    assert "snapshots" in versions_of_bucket("/lake/main/clicks", {})
