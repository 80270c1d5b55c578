"""An error of the store is classified once: as temporary, so that it is retried, or as a refusal that stays."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError, SchemaMismatchError

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.reader import PlannedRange
from pipelines.fetch.fetch_task import FetchTask
from pipelines.fetch.slice_file import SliceFile
from pipelines.layout.rows import table_rows
from pipelines.ledger.failure import SliceFailure
from pipelines.reports.last_error import LastError, LastErrors
from resources.errors import LakeRefused, LakeUnavailable
from resources.settings.settings import ClusterSettings, Settings
from resources.stores.lake import Lake, filesystem, lake_errors, write_file
from resources.stores.store_errors import reason_of
from tests.fakes.object_store import ObjectStore, object_store
from tests.small_table import SOURCE


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def lake_of(store: ObjectStore, **options: str) -> Lake:
    """The lake of settings, with pauses of milliseconds."""
    short = {"backoff_config.init_backoff": "1ms", "backoff_config.max_backoff": "2ms"}
    settings = Settings(
        lake=store.root,
        lake_options={**store.options, **short, **options},
        clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")},
    )
    return Lake.of(settings)


def seen(method: str, path: str, status: str, code: str) -> OSError:
    """A message as deltalake 1.6.6 prints it for an answer of moto, versitygw or Azurite."""
    arrow = "\x1b[31m↳\x1b[0m "
    url = f"http://127.0.0.1:9000/bucket/{path}"
    return OSError(
        f"Kernel error -> Generic S3 error\n  {arrow}Error performing {method} {url} in 8.1ms, after 1 retries, "
        f"max_retries\n  {arrow}1, retry_timeout\n  {arrow}2s  - Server returned non-2xx status code\n"
        f"  {arrow}{status}\n  {arrow}<?xml version='1.0'?><Error><Code>{code}</Code></Error>"
    )


def write_slice(root: str, options: Mapping[str, str]) -> str:
    """Write the file of a slice as a worker does; returns its path."""
    offsets = OffsetRange(BrokerPartition(0, 0), 0, 10)
    task = FetchTask(
        spark_task=0,
        source=SOURCE,
        planned=PlannedRange(topic="clicks", offsets=offsets, incarnation="7"),
        table_uri=f"{root}/main/clicks",
        folder="date=2026-01-02",
        options=options,
        parquet_codec="zstd",
        loaded_at_us=0,
    )
    decoded = pa.RecordBatch.from_pydict({"offset": pa.array([0], pa.int64()), "value": pa.array([b"x"])})
    with SliceFile(task) as file:
        file.write(table_rows(decoded, {"topic": "clicks"}))
    return file.path


def test_a_store_that_is_busy_for_a_while_does_not_fail_an_upload(store: ObjectStore) -> None:  # fault N14
    """Deltalake's own default are ten retries, which can be over after a few seconds."""
    store.answer(503, 30, ".parquet")
    lake = lake_of(store)
    path = write_slice(lake.root, lake.options)
    assert f"lake/main/clicks/{path}" in store.objects


@pytest.mark.parametrize("size", [0, 1, 5 * 2**20], ids=str)
def test_a_text_is_written_to_a_store(size: int, store: ObjectStore) -> None:
    files = filesystem(store.root, store.options)
    write_file(files, "some/folder/text", b"x" * size)
    with files.open_input_stream("some/folder/text") as stream:
        assert stream.read() == b"x" * size


def test_the_last_error_of_a_topic_is_kept_in_a_store(store: ObjectStore) -> None:  # fault U07
    error = LastError.of([SliceFailure(kind="Corrupt", reason="a checksum is wrong")], run="run", time_ms=1)
    assert LastErrors(lake_of(store), "main")("clicks", error) == ()
    assert LastErrors(lake_of(store), "main").read() == {"clicks": error}


def test_requests_are_repeated_for_a_minute() -> None:  # fault N14
    settings = Settings(lake="s3://bucket/lake", clusters={"main": ClusterSettings(bootstrap="127.0.0.1:1")})
    assert Lake.of(settings).options["retry_timeout"] == "60s"
    assert (
        Lake.of(settings.model_copy(update={"lake_options": {"retry_timeout": "9s"}})).options["retry_timeout"] == "9s"
    )


@pytest.mark.parametrize(
    ("status", "kind", "retriable"), [(503, "LakeUnavailable", True), (403, "LakeRefused", False)], ids=str
)
def test_a_failed_upload_says_whether_another_attempt_can_help(
    status: int, kind: str, retriable: bool, store: ObjectStore
) -> None:  # fault N14
    lake = lake_of(store, max_retries="2")
    store.answer(status, 50, ".parquet")
    with pytest.raises(LakeUnavailable) as failed:
        write_slice(lake.root, lake.options)
    store.answer(status, 0, "")
    failure = SliceFailure.of(failed.value, failed.value.where)
    assert (failure.kind, failure.retriable) == (kind, retriable)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(28, "No space left on device"), LakeUnavailable),
        (OSError("Generic S3 error: Server error with status 503"), LakeUnavailable),
        (DeltaError("Client error with status 429 Too Many Requests"), LakeUnavailable),
        (OSError(13, "Permission denied"), LakeRefused),
        (DeltaError("Client error with status 403 Forbidden: AccessDenied"), LakeRefused),
        (OSError("<Code>NoSuchBucket</Code>"), LakeRefused),
        (SchemaMismatchError("Cannot cast schema"), LakeRefused),
        (seen("GET", "lake/t/_delta_log/_last_checkpoint", "403 Forbidden", "SignatureDoesNotMatch"), LakeRefused),
        (seen("GET", "lake/t?list-type=2", "400 Bad Request", "InvalidArgument"), LakeRefused),
        (seen("GET", "lake/t?list-type=2", "404 Not Found", "XAdminUserNotFound"), LakeRefused),
        (seen("PUT", "lake/t/a?comp=block", "404 Not Found", "ContainerNotFound"), LakeRefused),
        (seen("PUT", "lake/t/a", "404 Not Found", "Unknown"), LakeRefused),
        (
            OSError("Generic MicrosoftAzure error\n \x1b[31m↳\x1b[0m Invalid Access Key\n Invalid symbol 33"),
            LakeRefused,
        ),
        (seen("PUT", "lake/t/a", "501 Not Implemented", "NotImplemented"), LakeRefused),
        (seen("POST", "lake/t/a?uploadId=7", "404 Not Found", "NoSuchUpload"), LakeUnavailable),
        (seen("GET", "lake/t/a", "404 Not Found", "NoSuchKey"), LakeUnavailable),
        (seen("PUT", "lake/t/a", "500 Internal Server Error", "InternalError"), LakeUnavailable),
        (seen("PUT", "lake/t/a", "503 Service Unavailable", "SlowDown"), LakeUnavailable),
        (seen("PUT", "lake/t/a", "429 Too Many Requests", "SlowDown"), LakeUnavailable),
        (seen("PUT", "lake/t/a", "408 Request Timeout", "RequestTimeout"), LakeUnavailable),
    ],
    ids=str,
)
def test_each_error_of_a_store_is_temporary_or_a_refusal(error: Exception, kind: type[Exception]) -> None:  # fault N14
    with pytest.raises(LakeUnavailable) as failed, lake_errors("s3://bucket/lake/main/clicks"):
        raise error
    assert type(failed.value) is kind


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            DeltaError('Kernel error: gap in commit files [ParsedLogPath { location: FileMeta { url: "x" } }]'),
            "entries of the Delta log are missing or damaged; `penstock verify` shows what can be read",
        ),
        (OSError("Generic LocalFileSystem error: x (os error 28)\n   0: \x1b[1mcore::x"), "no space left on device"),
        (OSError(28, "Error writing bytes to file. Detail: [errno 28] No space left"), "no space left on device"),
        (
            FileNotFoundError(2, "Failed to open local file '/lake/a.parquet'. Detail: [errno 2] x"),
            "/lake/a.parquet: no such file or directory",
        ),
        (
            DeltaError("<Error><Code>AccessDenied</Code></Error> status 403"),
            "the store denies access: check the credentials in `lake_op",
        ),
        (
            seen("GET", "lake/t?sig=canary", "403 Forbidden", "InvalidAccessKeyId"),
            "the store at http://127.0.0.1:9000 does not accept the credentials: check those in `lake_options`",
        ),
        (
            seen("PUT", "lake/t", "503 Slow Down", "SlowDown"),
            "the store at http://127.0.0.1:9000 is busy or unavailable (status 503)",
        ),
        (
            seen("GET", "lake?list-type=2", "404 Not Found", "NoSuchBucket"),
            "the store at http://127.0.0.1:9000 has no such bucket: check `lake`",
        ),
        (
            OSError("Generic S3 error: Server returned status 503 Slow Down"),
            "the store is busy or unavailable (status 503)",
        ),
        (DeltaError("Object at location lake/a.parquet not found: x"), "lake/a.parquet is missing"),
        (OSError("error sending request for url (http://x)"), "the store does not answer"),
        (SchemaMismatchError("Cannot cast schema"), "its columns are not those that Penstock writes, because another"),
        (pa.ArrowInvalid("Parquet magic bytes not found"), "a data file is damaged, and `penstock verify` names it"),
        (DeltaError("what nobody has seen yet"), "`penstock --debug` with the same command shows the reason"),
    ],
)
def test_the_reason_of_a_store_is_in_our_words(error: Exception, reason: str) -> None:  # fault U11
    with pytest.raises(LakeUnavailable) as failed, lake_errors("s3://bucket/lake/main/clicks"):
        raise error
    prefix = "the table s3://bucket/lake/main/clicks cannot be read or written: "
    assert failed.value.reason.startswith(f"{prefix}{reason}")
    assert failed.value.__cause__ is error


def test_a_reason_has_no_password_of_an_address() -> None:
    error = OSError("Error performing GET http://user:canary@127.0.0.1:9/bucket/t in 1ms - error sending request")
    assert reason_of(error) == "the store does not answer"


def test_a_folder_that_is_a_file_is_a_refusal(tmp_path: Path) -> None:  # fault N14
    (tmp_path / "main").write_text("a file")
    with pytest.raises(LakeRefused):
        write_slice(str(tmp_path), {})


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_lake_whose_path_deltalake_would_decode_is_refused(scheme: str, tmp_path: Path) -> None:  # fault U09
    """Deltalake 1.6 writes the log into `a%20b`, and reads it from `a b`."""
    clusters = {"main": ClusterSettings(bootstrap="127.0.0.1:1")}
    with pytest.raises(LakeRefused, match="has %20 in its path"):
        Lake.of(Settings(lake=f"{scheme}{tmp_path}/a%20b", clusters=clusters))
    assert Lake.of(Settings(lake=f"{scheme}{tmp_path}/100%", clusters=clusters)).root == f"{scheme}{tmp_path}/100%"
