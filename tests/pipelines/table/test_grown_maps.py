"""Files with other members in a map, and no others, are written again; their rows stay the same (fault A26)."""

from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from pipelines.layout.personal import with_mark
from pipelines.table.grown_maps import (
    files_with_other_maps,
    have_other_maps,
    with_all_members,
    with_maps_of,
    write_again,
)
from resources.stores import durable

_LONG = pa.int64()


def _struct(*names: str, **members: pa.DataType) -> pa.DataType:
    return pa.struct([*(pa.field(name, _LONG) for name in names), *(pa.field(*member) for member in members.items())])


def _map(content: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), content)


_OLD, _NEW = _struct("a"), _struct("a", "b")


@pytest.mark.parametrize(
    ("stored", "wanted", "is_other"),
    [
        (_OLD, _NEW, False),
        (pa.list_(_OLD), pa.list_(_NEW), False),
        (_struct(m=_map(_LONG)), _struct("b", m=_map(_LONG)), False),
        (_struct("a"), _struct("a", m=_map(_NEW)), False),
        (_map(_LONG), _map(_LONG), False),
        (_map(_NEW), _map(_NEW), False),
        (_map(_OLD), _map(_NEW), True),
        (_map(_NEW), _map(_OLD), True),
        (_map(_struct("b", "a")), _map(_NEW), True),
        (_map(_struct(s=_OLD)), _map(_struct(s=_NEW)), True),
        (_map(pa.list_(_OLD)), _map(pa.list_(_NEW)), True),
        (_map(_map(_OLD)), _map(_map(_NEW)), True),
        (pa.list_(_map(_OLD)), pa.list_(_map(_NEW)), True),
        (_struct("a", m=_map(_OLD)), _struct("a", m=_map(_NEW)), True),
    ],
    ids=str,
)
def test_members_of_structs_in_maps_count(stored: pa.DataType, wanted: pa.DataType, is_other: bool) -> None:
    columns = pa.schema([("id", _LONG), ("x", wanted), ("y", _map(_NEW))])
    assert have_other_maps(pa.schema([("x", stored), ("id", _LONG)]), columns) == is_other


@pytest.mark.parametrize(
    ("table", "rows", "joined"),
    [
        (_map(_OLD), _map(_NEW), _map(_NEW)),
        (_map(_NEW), _map(_OLD), _map(_NEW)),
        (_map(_struct("a", "b")), _map(_struct("c", "a")), _map(_struct("a", "b", "c"))),
        (_map(pa.list_(_OLD)), _map(pa.list_(_NEW)), _map(pa.list_(_NEW))),
        (
            _struct("c", m=_map(_OLD)),
            _struct("d", m=_map(_NEW)),
            pa.struct([*_struct("c", m=_map(_NEW)), ("d", _LONG)]),
        ),
        (_map(_OLD), pa.string(), _map(_OLD)),
        (_map(_OLD), _map(pa.string()), _map(_OLD)),
        (_OLD, _NEW, _OLD),
    ],
    ids=str,
)
def test_columns_get_the_members_of_both_schemas(table: pa.DataType, rows: pa.DataType, joined: pa.DataType) -> None:
    others = pa.schema([("x", rows), ("new", _map(_NEW))])
    assert with_all_members(pa.schema([("x", table), ("y", _map(_NEW))]), others) == pa.schema(
        [("x", joined), ("y", _map(_NEW))]
    )


def test_rows_get_the_members_that_a_table_has_and_keep_their_other_types() -> None:
    rows = pa.table({"x": pa.array([[("k", {"a": 1})]], _map(_OLD)), "y": pa.array([7], pa.int32()), "z": [True]})
    columns = pa.schema([("y", _LONG), ("x", _map(_NEW))])
    cast = with_maps_of(rows.to_reader(), columns).read_all()
    assert cast.schema == pa.schema([("x", _map(_NEW)), ("y", pa.int32()), ("z", pa.bool_())])
    assert cast.column("x").to_pylist() == [[("k", {"a": 1, "b": None})]]
    reader = cast.to_reader()
    assert with_maps_of(reader, columns) is reader


def test_no_file_is_opened_without_a_struct_in_a_map() -> None:
    opened = Mock()
    columns = pa.schema([("x", _map(_LONG)), ("y", pa.list_(_NEW)), ("z", _struct("a", m=_map(pa.string()), s=_OLD))])
    assert list(files_with_other_maps(opened, columns)) == []
    assert opened.mock_calls == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_map(_OLD), _map(_NEW)),
        (_map(pa.list_(_OLD)), _map(pa.list_(_NEW))),
        (pa.list_(_map(_OLD)), pa.list_(_map(_NEW))),
        (_struct("a", m=_map(_OLD)), _struct("a", m=_map(_NEW))),
    ],
    ids=str,
)
def test_files_with_other_members_in_a_map_are_found_among_those_that_may_have_the_rows(
    old: pa.DataType, new: pa.DataType, tmp_path: Path
) -> None:
    for day, type_ in ((1, old), (2, new), (3, old)):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"x": pa.array([None], type_)}), tmp_path / f"day={day}" / "a.parquet")
    dataset, columns = pads.dataset(tmp_path, partitioning="hive"), pa.schema([("id", _LONG), ("x", new)])
    assert [Path(file.path).parent.name for file in files_with_other_maps(dataset, columns)] == ["day=1", "day=3"]
    [file] = files_with_other_maps(dataset, columns, pc.field("day") > 1)
    assert Path(file.path).parent.name == "day=3"


def column_statistics(file: Path, name: str) -> list[Any]:
    """The statistics of a column in each row group."""
    footer = pq.read_metadata(file)
    place = footer.schema.to_arrow_schema().get_field_index(name)
    return [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]


def test_a_file_is_written_again_with_all_members_and_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(durable, "sync_file", lambda _, path: synced.append(path))
    personal = [
        with_mark(pa.field(name, type_), personal=True)
        for name, type_ in (("email", pa.string()), ("raw", pa.binary()))
    ]
    price = pa.decimal128(9, 2)
    old = pa.schema([("id", _LONG), *personal, ("price", price), ("m", _map(_OLD))])
    rows: list[dict[str, Any]] = [
        {"id": 7, "email": "a@b", "raw": b"a", "price": Decimal("1.50"), "m": [("k", {"a": 1})]},
        {"id": 8, "email": None, "raw": b"b", "price": Decimal("0.25"), "m": None},
        {"id": 9, "email": None, "raw": None, "price": None, "m": []},
    ]
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, old), tmp_path / "day=1" / "a.parquet", row_group_size=2)
    folder = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    [file] = pads.dataset("day=1/a.parquet", filesystem=folder).get_fragments()
    columns = pa.schema([*(old.field(name) for name in old.names[:-1]), ("m", _map(_NEW))])
    grown = write_again(file, str(tmp_path), {}, columns)
    written = tmp_path / grown.path
    assert (written.parent.name, grown.size, synced) == ("day=1", written.stat().st_size, [grown.path])
    rows[0]["m"] = [("k", {"a": 1, "b": None})]
    assert pq.read_table(written, partitioning=None).to_pylist() == rows
    # The statistics show no personal value. Binary columns have none.
    assert [statistics.max for statistics in column_statistics(written, "id")] == [8, 9]
    assert column_statistics(written, "email") == [None, None]
    assert column_statistics(written, "raw") == [None, None]
    stats = msgspec.json.decode(msgspec.json.encode(grown.stats))
    assert (stats["minValues"].pop("email"), stats["maxValues"].pop("email") > "z") == ("", True)
    assert stats == {
        "numRecords": 3,
        "minValues": {"id": 7, "price": 0.25},
        "maxValues": {"id": 9, "price": 1.5},
        "nullCount": {"id": 0, "email": 2, "price": 1},
    }
    content = bytearray(written.read_bytes())
    content[content.index(b"a@b")] ^= 1
    written.write_bytes(content)
    with pytest.raises(OSError, match="CRC checksum"):  # fault A14
        pq.read_table(written, partitioning=None, page_checksum_verification=True)
