"""A null of the table stands for an object or array without a value, and for nothing else."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_io.values.json.reading import json_text
from pipelines.comparison.empty_values import differs_in_values

LONG = pa.field("x", pa.int64())
STRUCT = pa.field("x", pa.struct([LONG, pa.field("y", pa.list_(pa.struct([LONG]))), json_text("z")]))


def struct(x: int | None = None, y: Any = None, z: str | None = None) -> dict[str, Any]:
    return {"x": x, "y": y, "z": z}


@pytest.mark.parametrize(
    ("field", "of_table", "of_broker", "differs"),
    [
        (STRUCT, None, struct(), False),
        (STRUCT, None, struct(y=[{"x": None}, None], z='{"a": [{}, null]}'), False),
        (STRUCT, None, struct(x=0), True),
        (STRUCT, None, struct(y=[{"x": 0}]), True),
        (STRUCT, None, struct(z='{"a": [{}, ""]}'), True),
        (STRUCT, struct(), None, True),
        (STRUCT, struct(x=1), struct(x=1, y=[]), False),
        (STRUCT, struct(x=1), struct(x=2, y=[]), True),
        (STRUCT, struct(y=[{"x": 1}]), struct(y=[{"x": 1}, None]), True),
        (STRUCT, struct(y=[{"x": 1}, None]), struct(y=[{"x": 1}, {"x": None}]), False),
        (json_text("x"), None, "[]", False),
        (json_text("x"), None, "[false]", True),
        (LONG, None, 0, True),
        (pa.field("x", pa.string()), None, "{}", True),
    ],
)
# fault E28
def test_only_a_null_for_a_value_without_content_is_no_difference(
    field: pa.Field, of_table: Any, of_broker: Any, differs: bool
) -> None:
    table, broker = (pa.array([cell], field.type) for cell in (of_table, of_broker))
    assert differs_in_values(table, broker, np.array([True]), field).tolist() == [differs]
