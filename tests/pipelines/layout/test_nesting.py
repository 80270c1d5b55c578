"""Columns are never nested deeper than readers of Delta allow (fault E15); deltalake says what it allows."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from kafka_io.values.column_types import LIST_COST, MAP_COST, MAX_NESTING, STRUCT_COST, nesting

INSIDE: Mapping[str, Callable[[pa.DataType], pa.DataType]] = {
    "struct": lambda kind: pa.struct([("a", kind)]),
    "list": lambda kind: pa.list_(pa.field("element", kind)),
    "map": lambda kind: pa.map_(pa.string(), kind),
}
COSTS = {"struct": STRUCT_COST, "list": LIST_COST, "map": MAP_COST}


def nested(*kinds: str) -> pa.DataType:
    """A type with these types inside each other, the innermost first."""
    type_: pa.DataType = pa.int64()
    for kind in kinds:
        type_ = INSIDE[kind](type_)
    return type_


def deepest(*kinds: str) -> pa.DataType:
    """The deepest type that the limit allows, whose types alternate like this."""
    chosen: list[str] = []
    left = MAX_NESTING
    while (kind := kinds[len(chosen) % len(kinds)]) and COSTS[kind] <= left:
        chosen.append(kind)
        left -= COSTS[kind]
    return nested(*chosen)


def read(folder: Path, type_: pa.DataType) -> pa.Table:
    write_deltalake(str(folder), pa.table({"x": pa.array([None], type_)}))
    return DeltaTable(str(folder)).to_pyarrow_table()


# fault E15
@pytest.mark.parametrize(
    "kinds", [("struct",), ("list",), ("map",), ("struct", "list"), ("map", "struct"), ("list", "map", "struct")]
)
def test_deltalake_opens_tables_up_to_the_limit(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    type_ = deepest(*kinds)
    assert MAX_NESTING - MAP_COST < nesting(type_) <= MAX_NESTING
    assert len(read(tmp_path / "table", type_)) == 1


def test_deltalake_opens_no_table_that_is_deeper(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="too deeply nested"):
        read(tmp_path / "structs", nested(*["struct"] * 42))
    with pytest.raises(OSError, match="too deeply nested"):
        read(tmp_path / "lists", nested(*["list"] * 50))
    with pytest.raises(pa.ArrowInvalid, match="Recursion level"):
        read(tmp_path / "maps", nested(*["map"] * 32))
