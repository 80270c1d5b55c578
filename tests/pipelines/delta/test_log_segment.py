"""The log of a table in an object store is read once. What only deltalake can read, deltalake reads."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from pipelines.commit.commit import commit
from pipelines.delta import reader as table_reader
from pipelines.delta.delta_log_segment import DeltaLogUnclear, TableDefinition, read_newer, read_segment
from pipelines.delta.open_version import DeltaVersion
from pipelines.delta.table_copy import CopiedVersion
from pipelines.ledger.ledger import CommitKind
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.table.open_table import file_paths
from pipelines.table.table_store import CommitConflict
from pipelines.verify.verify import verify
from resources.errors import CursorMismatch, LakeUnavailable, LoadError, LogTorn, TableForeign, TableReplaced
from resources.stores import durable
from resources.stores.object_client import ObjectClient, object_client
from tests.fakes.object_store import BUCKET, ObjectStore, object_store
from tests.small_store import SmallStore

pytestmark = pytest.mark.slow  # each test fills a table and changes it

_POINTER = "_last_checkpoint"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture(scope="module")
def template(store: ObjectStore) -> SmallStore:
    """A table with version 12, whose checkpoint is of version 10."""
    table = SmallStore(store, "template")
    for start in range(0, 120, 10):
        table.commit(table.write(start, start + 10))
    return table


@pytest.fixture
def table(template: SmallStore, store: ObjectStore) -> SmallStore:
    """A copy of the template."""
    name, bucket = f"lake-{uuid4().hex}", object_client(f"s3://{BUCKET}", store.options)
    assert bucket is not None
    paths = [stored.path for stored in bucket.list("template")]
    for stored in bucket.read_all(paths):
        bucket.write(stored.path.replace("template", name, 1), stored.content)
    copied = SmallStore(store, name)
    copied._loaded_at = template._loaded_at
    return copied


def client(table: SmallStore) -> ObjectClient:
    of_table = object_client(table.uri, table.lake.options)
    assert of_table is not None
    return of_table


def log_file(version: int, suffix: str = "json") -> str:
    return f"_delta_log/{version:020d}.{suffix}"


def check_read(table: SmallStore, *, version: int = 12) -> None:
    """Check that Penstock reads what deltalake reads."""
    snapshot, handle = table.table.existing(), table.handle()
    assert snapshot is not None
    assert snapshot.version == handle.version() == version
    assert file_paths(snapshot.opened) == file_paths(DeltaVersion.of_handle(handle))
    assert snapshot.opened.uri.rstrip("/") == table.uri
    assert snapshot.opened.count() == handle.count() == table.rows()
    assert snapshot.opened.dataset().count_rows() == table.rows()
    assert snapshot.table_id == str(handle.metadata().id)
    assert snapshot.opened.fields() == json.loads(handle.schema().to_json())["fields"]


def test_a_segment_has_the_checkpoint_and_the_entries_after_it(table: SmallStore) -> None:
    segment = read_segment(client(table))
    assert segment is not None
    assert (segment.checkpoint_version, list(segment.commit_files)) == (10, [11, 12])
    check_read(table)
    assert verify(table.table).proven


def test_a_folder_without_a_log_is_no_table(table: SmallStore) -> None:
    elsewhere = object_client(f"{table.lake.root}/other/topic", table.lake.options)
    assert elsewhere is not None
    assert read_segment(elsewhere) is None


def test_the_newest_properties_and_columns_count(table: SmallStore) -> None:
    for owner in ("first", "second"):
        table.handle().alter.set_table_properties({"owner": owner}, raise_if_not_exists=False)
        table.handle().alter.add_columns([Field(owner, PrimitiveType("string"))])
    segment, handle = read_segment(client(table)), table.handle()
    assert segment is not None
    assert segment.definition == TableDefinition.of_handle(handle)
    assert segment.definition.configuration["owner"] == "second"
    check_read(table, version=16)


@pytest.mark.parametrize("name", ["crc", "compacted"])
def test_what_repeats_entries_is_ignored(name: str, table: SmallStore) -> None:
    path = log_file(12, "crc") if name == "crc" else f"_delta_log/{11:020d}.{12:020d}.compacted.json"
    client(table).write(path, b"{}\n")
    assert read_segment(client(table)) is not None


def as_parts(table: SmallStore) -> None:
    """Replace the checkpoint by one in parts, as Spark writes it."""
    content = client(table).read(log_file(10, "checkpoint.parquet")).content
    table.store.delete(table.key(f"{10:020d}.checkpoint.parquet"))
    client(table).write(log_file(10, f"checkpoint.{1:010d}.{1:010d}.parquet"), content)
    pointer = json.loads(client(table).read(f"_delta_log/{_POINTER}").content)
    client(table).write(f"_delta_log/{_POINTER}", json.dumps({**pointer, "parts": 1}).encode())


def without_pointer(table: SmallStore) -> None:
    """Remove the pointer: the listing shows the checkpoint."""
    table.store.delete(table.key(_POINTER))


def without_checkpoint(table: SmallStore) -> None:
    """Remove the checkpoint, so that the pointer is wrong."""
    table.store.delete(table.key(f"{10:020d}.checkpoint.parquet"))


def with_sidecars(table: SmallStore) -> None:
    """Add a folder of checkpoints of version 2."""
    client(table).write("_delta_log/_sidecars/some.parquet", b"")


def with_named_checkpoint(table: SmallStore) -> None:
    """Add a checkpoint of version 2, which deltalake ignores as it is empty."""
    client(table).write(log_file(11, f"checkpoint.{uuid4()}.json"), b"")


def with_damaged_pointer(table: SmallStore) -> None:
    """Cut the pointer off."""
    client(table).write(f"_delta_log/{_POINTER}", b'{"versi')


@pytest.mark.slow
@pytest.mark.parametrize("change", [as_parts, without_pointer, with_sidecars, with_damaged_pointer])
def test_another_form_of_the_log_is_read_as_deltalake_reads_it(change: Any, table: SmallStore) -> None:
    change(table)
    if change is not without_pointer:
        with pytest.raises(DeltaLogUnclear):
            read_segment(client(table))
    check_read(table)
    assert verify(table.table).proven
    table.commit(table.write(120, 130))
    check_read(table, version=13)


def test_a_checkpoint_of_version_2_is_left_to_deltalake(table: SmallStore) -> None:
    with_named_checkpoint(table)
    with pytest.raises(DeltaLogUnclear):
        read_segment(client(table))


@pytest.mark.parametrize("content", [b"[]", b'{"commitInfo":{', b'{"metaData":{"id":7}}', b'{"protocol":1}'], ids=repr)
def test_a_damaged_entry_is_a_typed_error(content: bytes, table: SmallStore) -> None:
    client(table).write(log_file(12), content)
    with pytest.raises(LoadError):
        table.table.existing()


@pytest.mark.parametrize("version", [11, 12])
def test_a_truncated_entry_is_named(version: int, table: SmallStore) -> None:  # fault L10
    content = client(table).read(log_file(version)).content
    client(table).write(log_file(version), content[: len(content) // 2])
    with pytest.raises(LogTorn if version == 12 else LakeUnavailable, match="clicks"):
        table.table.existing()


def test_a_truncated_checkpoint_is_named(table: SmallStore) -> None:  # fault L13
    client(table).write(log_file(10, "checkpoint.parquet"), b"PAR1")
    with pytest.raises(LogTorn, match=r"checkpoint.parquet .* is incomplete or damaged"):
        table.table.existing()


def test_a_checkpoint_that_the_log_points_to_and_lacks_is_named(table: SmallStore) -> None:  # fault E06
    without_checkpoint(table)
    with pytest.raises(DeltaLogUnclear):
        read_segment(client(table))
    with pytest.raises(LogTorn, match=r"names the checkpoint of version 10, .* move _delta_log/_last_checkpoint away"):
        table.table.existing()
    table.store.delete(table.key(_POINTER))
    check_read(table)


def test_a_pointer_beyond_the_log_is_left_to_deltalake(table: SmallStore) -> None:
    client(table).write(f"_delta_log/{_POINTER}", b'{"version":1000000000,"size":1}')
    with pytest.raises(DeltaLogUnclear):
        read_segment(client(table))


def test_a_missing_entry_is_an_error(table: SmallStore) -> None:  # fault P06
    table.store.delete(table.key(f"{11:020d}.json"))
    with pytest.raises(DeltaLogUnclear):
        read_segment(client(table))
    with pytest.raises(LogTorn, match=r"0{18}11.json of the table .* is missing: .* Copy it back"):
        table.table.existing()


def test_a_hole_between_newer_entries_is_left_to_deltalake(table: SmallStore) -> None:  # fault P06
    """Somebody deletes a commit, also one of those that came after the last look at the log."""
    segment = read_segment(client(table))
    assert segment is not None
    for start in (120, 130):
        table.commit(table.write(start, start + 10))
    table.store.delete(table.key(f"{13:020d}.json"))
    with pytest.raises(DeltaLogUnclear):
        read_newer(client(table), segment)
    with pytest.raises(DeltaLogUnclear):
        read_segment(client(table))


def test_a_later_protocol_is_named(table: SmallStore) -> None:  # fault E24
    action = {"protocol": {"minReaderVersion": 4, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []}}
    client(table).write(log_file(13), json.dumps({"commitInfo": {}}).encode() + b"\n" + json.dumps(action).encode())
    with pytest.raises(TableForeign, match="needs version 4 of Delta's protocol for readers and 7 for writers"):
        table.table.existing()


def test_newer_entries_alone_are_read(table: SmallStore) -> None:  # fault L22
    snapshot = table.table.snapshot()
    before = len(table.store.requests)
    assert table.table.newer(snapshot).version == 12
    assert len(table.store.requests) - before == 1
    table.commit(table.write(120, 130))
    before = len(table.store.requests)
    newest = table.table.newer(snapshot)
    assert (newest.version, len(table.store.requests) - before) == (13, 2)
    assert newest.entry == table.table.snapshot().entry
    assert file_paths(newest.opened) == file_paths(DeltaVersion.of_handle(table.handle()))


def test_a_log_whose_newest_entry_is_another_is_read_again(table: SmallStore) -> None:  # fault P07
    snapshot = table.table.snapshot()
    assert snapshot.entry is not None
    before, after = snapshot.entry.commit.encode(), uuid4().hex
    content = client(table).read(log_file(12)).content
    client(table).write(log_file(12), content.replace(before, after.encode()))
    newest = table.table.newer(snapshot).entry
    assert newest is not None
    assert newest.commit == after


def test_a_long_segment_is_read_again_for_a_newer_checkpoint(
    table: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault L22
    snapshot = table.table.snapshot()
    monkeypatch.setattr(table_reader, "_MAX_COMMITS_KEPT", 1)
    before = len(table.store.requests)
    assert table.table.newer(snapshot).version == 12
    assert len(table.store.requests) - before == 5, "the pointer, the listing, the checkpoint and two entries"


@pytest.mark.slow
def test_opening_a_table_imports_no_pandas(table: SmallStore) -> None:
    """It would cost each load its time and memory."""
    program = (
        "import json, sys\n"
        "from pipelines.formats.tables import table_at\n"
        "snapshot = table_at(sys.argv[1], json.loads(sys.argv[2])).existing()\n"
        "print(snapshot.version, 'pandas' in sys.modules, 'pyarrow.dataset' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, table.uri, json.dumps(dict(table.lake.options))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [
        "12",
        "False",
        "False",
    ]


def test_a_removed_table_is_noticed(table: SmallStore) -> None:  # fault P07
    snapshot = table.table.snapshot()
    segment = read_segment(client(table))
    assert segment is not None
    for key in [key for key in table.store.objects if key.startswith(table.key(""))]:
        table.store.delete(key)
    assert read_newer(client(table), segment) is None
    with pytest.raises(TableReplaced):
        table.table.newer(snapshot)
    with pytest.raises(TableReplaced):
        table.commit(table.write(120, 130), snapshot=snapshot)
    assert not [key for key in table.store.objects if key.startswith(table.key(""))]


def test_two_commits_on_one_version_conflict(table: SmallStore) -> None:  # fault L05
    first, second = table.table.snapshot(), table.table.snapshot()
    change = table.loading(table.write(120, 130), snapshot=first)
    table.commit(table.write(120, 130), snapshot=second)
    with pytest.raises(CommitConflict):
        change.write(table.table, first)
    assert commit(table.table, first, change, sleep=lambda _: None).overtaken_by == "run"
    assert verify(table.table).proven


def test_a_commit_lands_on_top_of_a_compaction(table: SmallStore) -> None:
    snapshot = table.table.snapshot()
    table.handle().optimize.compact()
    assert table.commit(table.write(120, 130), snapshot=snapshot).version == 14
    assert verify(table.table).proven
    assert table.rows() == 13


def test_a_rewind_repairs_a_restored_table(table: SmallStore) -> None:  # fault L14
    table.handle().restore(11)
    with pytest.raises(CursorMismatch):
        table.table.newer(table.table.newest() or table.table.snapshot())
    planned = plan_rewind(table.table, 11, run="rewinder")
    assert planned.opened.newer(planned.snapshot).version == 13
    assert rewind(planned) == 14
    assert verify(table.table).proven
    assert table.rows() == 11


@pytest.mark.parametrize("kind", ["rewind", "cut"])
def test_a_change_of_rows_does_not_land_on_a_newer_version(kind: str, table: SmallStore) -> None:  # fault L06
    """Deltalake opens the table again for such a change, but at the version on which it was planned."""
    snapshot = table.table.snapshot()
    assert snapshot.entry is not None
    table.commit(table.write(120, 130))
    entry = replace(snapshot.entry, commit=uuid4().hex, sequence=snapshot.next_sequence, kind=CommitKind(kind))
    replaced = list(snapshot.entry.ranges) if kind == "cut" else []
    with pytest.raises(CommitConflict):
        table.table.write(snapshot, replace(entry, target=11 if kind == "rewind" else None), [], replaced)
    assert table.rows() == 13
    assert verify(table.table).proven


def test_a_refused_entry_is_not_in_the_table(table: SmallStore) -> None:
    snapshot = table.table.snapshot()
    client(table).create(log_file(13), b'{"commitInfo":{"operation":"WRITE"}}\n')
    assert table.commit(table.write(120, 130), snapshot=snapshot).version == 14
    assert table.rows() == 13


def test_a_checkpoint_that_deltalake_writes_into_the_copy_is_complete(table: SmallStore) -> None:  # fault L22
    for start in range(120, 200, 10):
        table.commit(table.write(start, start + 10))
    pointer = json.loads(client(table).read(f"_delta_log/{_POINTER}").content)
    assert pointer["version"] == 20
    client(table).write(f"_delta_log/{_POINTER}", json.dumps({**pointer, "version": 10}).encode())
    segment = read_segment(client(table))
    assert segment is not None
    assert (segment.checkpoint_version, list(segment.commit_files)) == (20, [20]), "the listing shows it"
    for version in range(20):
        table.store.delete(table.key(f"{version:020d}.json"))
    assert table.handle().version() == 20
    assert table.rows() == 20
    assert table.handle().transaction_version("penstock/sequence") == 20


def test_a_copy_has_no_method_that_would_write_into_it_alone(table: SmallStore) -> None:
    """Only one method that a copy shares with deltalake writes, and it writes into the table."""
    allowed = {"count", "create_checkpoint", "schema", "version"}
    opened = table.table.snapshot().opened
    assert isinstance(opened, CopiedVersion)
    names = {name for name in dir(DeltaTable) if not name.startswith("_")} - allowed
    assert names.isdisjoint(dir(opened))
    table.commit(table.write(120, 130))
    newest = table.table.snapshot().opened
    assert isinstance(newest, CopiedVersion)
    newest.create_checkpoint()
    assert json.loads(client(table).read(f"_delta_log/{_POINTER}").content)["version"] == 13
    assert DeltaVersion.of(table.table.snapshot()).writer.table_uri.startswith(table.uri)


def test_a_copy_is_removed_with_its_snapshot(table: SmallStore) -> None:
    copy = DeltaVersion.of(table.table.snapshot()).handle
    folder = durable.local_path(copy.table_uri)
    assert folder is not None
    assert folder.exists()
    del copy
    assert not folder.exists()


def test_a_checkpoint_that_cannot_be_written_fails_no_commit(table: SmallStore) -> None:  # fault L22
    for start in range(120, 190, 10):
        table.commit(table.write(start, start + 10))
    snapshot = table.table.snapshot()
    table.store.answer(403, 5, "checkpoint")
    table.commit(table.write(190, 200), snapshot=snapshot)
    table.store.answer(200, 0, "")
    assert json.loads(client(table).read(f"_delta_log/{_POINTER}").content)["version"] == 10
    check_read(table, version=20)
