"""Requests to an object store: what each sends, what its errors become, and which stores are left to deltalake."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake.fs import DeltaStorageHandler

from kafka_io.errors import SecretMissing
from resources.stores.lake import filesystem, list_folder, write_file
from resources.stores.object_client import PART_BYTES, ObjectClient, ObjectWriter, object_client
from resources.stores.store_options import duration, store_options
from tests.fakes.object_store import ObjectStore, object_store

OPTIONS = {"aws_access_key_id": "key", "aws_secret_access_key": "hush", "aws_region": "us-east-1"}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def client(store: ObjectStore) -> ObjectClient:
    return connected(f"{store.root}/{uuid4().hex}", store.options)


def connected(uri: str, options: dict[str, str]) -> ObjectClient:
    client = object_client(uri, options)
    assert client is not None
    return client


def counted(store: ObjectStore, act: Any) -> list[str]:
    """The methods of the requests of an action."""
    before = len(store.requests)
    act()
    return [method for method, _ in store.requests[before:]]


@pytest.mark.parametrize("length", [0, 3, PART_BYTES - 1], ids=str)
def test_a_small_file_is_one_request(length: int, client: ObjectClient, store: ObjectStore) -> None:
    content, writer = b"x" * length, ObjectWriter(client, "file")

    def write() -> None:
        writer.write(content[: length // 2])
        writer.write(content[length // 2 :])
        assert writer.tell() == length
        writer.close()
        writer.close()

    assert counted(store, write) == ["PUT"]
    assert client.read("file").content == content


@pytest.mark.slow
def test_a_large_file_is_sent_in_parts(client: ObjectClient, store: ObjectStore) -> None:
    files = filesystem(f"{store.root}/large", store.options)
    content = bytes(range(256)) * (PART_BYTES // 128)

    def write() -> None:
        with files.open_output_stream("file") as stream:
            for start in range(0, len(content), 2**20):
                stream.write(content[start : start + 2**20])

    assert counted(store, write) == ["POST", "PUT", "PUT", "POST"]
    with files.open_input_stream("file") as stream:
        assert stream.read() == content


def test_the_file_system_writes_a_small_file_with_one_request(store: ObjectStore) -> None:
    files = filesystem(f"{store.root}/small", store.options)
    assert counted(store, lambda: write_file(files, "folder/file", b"content")).count("PUT") == 1
    with files.open_input_stream("folder/file") as stream:
        assert stream.read() == b"content"


def test_a_file_that_is_not_closed_is_no_object(client: ObjectClient, store: ObjectStore) -> None:
    ObjectWriter(client, "file").write(b"content")
    with pytest.raises(FileNotFoundError):
        client.read("file")


def test_an_object_is_created_once(client: ObjectClient) -> None:
    e_tag = client.create("entry", b"first")
    with pytest.raises(FileExistsError):
        client.create("entry", b"second")
    stored = client.read("entry")
    assert (stored.content, stored.e_tag) == (b"first", e_tag)
    assert client.write("entry", b"third") != e_tag
    assert client.read("entry").content == b"third"


def test_a_listing_begins_after_a_path(client: ObjectClient) -> None:
    e_tags = {name: client.create(f"log/{name}", name.encode()) for name in ("1", "2", "3")}
    client.create("other", b"")
    assert [(stored.path, stored.e_tag) for stored in client.list("log", after="log/1")] == [
        ("log/2", e_tags["2"]),
        ("log/3", e_tags["3"]),
    ]
    assert not list(client.list("nothing"))


def test_objects_are_read_in_the_order_of_their_paths(client: ObjectClient) -> None:
    names = [f"{number}" for number in range(40)]
    for name in names:
        client.create(name, name.encode())
    assert [stored.content.decode() for stored in client.read_all(names[::-1])] == names[::-1]
    with pytest.raises(FileNotFoundError):
        client.read_all([*names, "missing"])


def test_an_error_has_the_reason_and_no_dump(client: ObjectClient, store: ObjectStore) -> None:
    store.answer(403, 1, "secret")
    with pytest.raises(OSError, match="403 Forbidden") as refused:
        client.read("secret")
    assert "\n\n" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert "hush" not in repr(connected("s3://bucket/lake", OPTIONS))


def test_an_error_hides_the_password_of_a_url() -> None:
    options = {**OPTIONS, "aws_endpoint_url": "http://me:hush@127.0.0.1:9", "allow_http": "true", "max_retries": "0"}
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:9/") as refused:
        connected("s3://bucket/lake", options).read("entry")
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "uri", ["/lake/main/clicks", "file:///lake/main/clicks", "hdfs://node:8020/lake/main/clicks"], ids=str
)
def test_a_disk_and_hdfs_have_no_client(uri: str) -> None:
    assert object_client(uri, {}) is None


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("gs://bucket/lake", {}),
        ("az://container/lake", {"azure_storage_account_name": "events", "azure_storage_account_key": "aGk="}),
        ("abfss://container@events.dfs.core.windows.net/lake", {"azure_storage_account_key": "aGk="}),
    ],
)
def test_other_stores_have_a_client(uri: str, options: dict[str, str]) -> None:
    assert connected(f"{uri}/a%20b", options).key("entry") == "lake/a b/entry"


@pytest.mark.parametrize(
    "options",
    [
        {"aws_s3_locking_provider": "dynamodb"},
        {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"},
        {"aws_conditional_put": "disabled"},
        {"an_option_of_deltalake": "1"},
        {"timeout": "soon"},
    ],
    ids=str,
)
def test_options_that_only_deltalake_understands_are_left_to_it(options: dict[str, str]) -> None:
    assert object_client("s3://bucket/lake", {**OPTIONS, **options}) is None


def test_credentials_in_the_files_of_aws_are_left_to_deltalake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    region = {"aws_region": "us-east-1"}
    assert object_client("s3://bucket/lake", region) is not None
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\n")
    assert object_client("s3://bucket/lake", region) is None
    assert object_client("s3://bucket/lake", OPTIONS) is not None
    (tmp_path / ".aws" / "credentials").unlink()
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert object_client("s3://bucket/lake", region) is None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    assert object_client("s3://bucket/lake", region) is not None


@pytest.mark.parametrize("name", ["aws_allow_http", "AWS_ALLOW_HTTP", "allow_http"])
def test_flags_of_the_client_are_not_options_of_the_store(name: str) -> None:
    assert object_client("s3://bucket/lake", {**OPTIONS, name: "true", "retry_timeout": "60s", "max_retries": "3"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allow_invalid_certificates", "true"),
        ("connect_timeout", "5s"),
        ("default_content_type", "application/json"),
        ("http1_only", "false"),
        ("http2_keep_alive_interval", "5s"),
        ("http2_keep_alive_timeout", "5s"),
        ("http2_keep_alive_while_idle", "true"),
        ("http2_only", "true"),
        ("pool_idle_timeout", "5s"),
        ("pool_max_idle_per_host", "3"),
        ("proxy_url", "http://127.0.0.1:9"),
        ("proxy_excludes", "localhost"),
        ("randomize_addresses", "false"),
        ("read_timeout", "5s"),
        ("timeout", "5s"),
        ("user_agent", "penstock"),
    ],
)
def test_each_option_of_the_connection_is_known(name: str, value: str) -> None:
    """As an option of the store itself, such a name would end the process with a panic of the library."""
    assert object_client("s3://bucket/lake", {**OPTIONS, name: value}) is not None


def test_secrets_are_read_from_their_references(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**store.options, "aws_access_key_id": "env:KEY_OF_STORE"}
    with pytest.raises(SecretMissing):
        object_client(store.root, options)
    monkeypatch.setenv("KEY_OF_STORE", "key")
    client = connected(f"{store.root}/secrets", options)
    client.create("entry", b"content")
    assert client.read("entry").content == b"content"


@pytest.mark.parametrize(
    ("text", "seconds"), [("200ms", 0.2), ("60s", 60), ("1m 30s", 90), ("2 hours", 7200), ("5usec", 5e-6)]
)
def test_lengths_of_time_are_read_as_deltalake_reads_them(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "5", "5 parsecs", "1s later"])
def test_other_texts_are_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"length of time|unknown unit"):
        duration(text)


def test_an_arrow_file_can_be_written(client: ObjectClient) -> None:
    with pa.PythonFile(client.open_writer("rows"), mode="w") as stream, pa.ipc.new_file(stream, pa.schema([])):
        pass
    assert pa.ipc.open_file(client.read("rows").content).schema.names == []


@pytest.mark.parametrize("folder", ["", "a", "a/", "none", "t%2Eopic", "ä"])
def test_a_folder_is_listed_as_deltalake_lists_it(folder: str, store: ObjectStore) -> None:
    uri = f"{store.root}/{uuid4().hex}/main"
    files = filesystem(uri, store.options)
    for path in ("a/b/c", "a/d", "e", "t%2Eopic/_delta_log/0.json", "ä/x y"):
        write_file(files, path, b"content")
    by_deltalake = pafs.PyFileSystem(DeltaStorageHandler(uri, store_options(store.options)))
    assert described(list_folder(files, folder)) == described(list_folder(by_deltalake, folder))
    listed_files = [info for info in list_folder(by_deltalake, folder, recursive=True) if info.is_file]
    assert described(list_folder(files, folder, recursive=True)) == described(listed_files)


def described(infos: list[pafs.FileInfo]) -> list[tuple[Any, ...]]:
    """The files and folders of a listing, in the order of their paths."""
    return sorted((info.path, info.base_name, info.type.name, info.size, info.mtime) for info in infos)


def test_a_listing_is_one_request(store: ObjectStore) -> None:
    """With deltalake it is one for each folder, and no other thread runs Python until the answer is there."""
    files = filesystem(f"{store.root}/{uuid4().hex}", store.options)
    for path in ("a/b/c", "a/d", "e/f/g"):
        write_file(files, path, b"content")
    assert counted(store, lambda: list_folder(files, "")) == ["LIST"]
    assert counted(store, lambda: list_folder(files, "", recursive=True)) == ["LIST"]
