"""Which files are written again: those with other members in a map, and no others (fault A26)."""

from unittest.mock import Mock

import pyarrow as pa
import pytest

from pipelines.table.grown_maps import files_with_other_maps, have_other_maps, with_all_members, with_maps_of

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
        (_struct(m=_map(_OLD)), _struct(m=_map(_NEW)), True),
    ],
    ids=str,
)
def test_members_of_structs_in_maps_count(stored: pa.DataType, wanted: pa.DataType, is_other: bool) -> None:
    assert have_other_maps(pa.schema([("x", stored)]), pa.schema([("x", wanted), ("y", _map(_NEW))])) == is_other


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
    columns = pa.schema([("x", _map(_LONG)), ("y", pa.list_(_NEW)), ("z", _struct("a", m=_map(pa.string())))])
    assert list(files_with_other_maps(opened, columns)) == []
    assert opened.mock_calls == []
