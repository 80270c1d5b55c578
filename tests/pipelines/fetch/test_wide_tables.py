"""The work of planning grows with the number of columns, not with its square. It is counted as calls of functions."""

import json
import sys
from collections.abc import Callable
from types import FrameType

import pyarrow as pa
import pytest

from kafka_io.schema_registry.schemas import RegisteredSchema, SchemaType
from kafka_io.values.columns import described, grow
from kafka_io.values.json.inference import grow_by_fields
from pipelines.fetch.decode_plan import Learned, WriterSchemas, plan_decoding
from pipelines.layout.columns import grown, missing_columns
from pipelines.layout.layout import TYPED
from resources.settings.topic_formats import TopicFormat

FEW, TIMES = 100, 8
LONG = pa.int64()
Work = Callable[[], object]


def calls(work: Work) -> int:
    """The number of calls of functions, also of those in C, while the work is done."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def fields(count: int, kind: pa.DataType = LONG) -> list[pa.Field]:
    return [described(f"field{number}", kind) for number in range(count)]


def grow_by_a_known_sample(columns: int) -> Work:
    """Workers compare each batch with new keys, or with values that do not decode, with all columns."""
    return lambda: grow_by_fields(pa.schema(fields(columns)), fields(columns))


def grow_by_a_new_sample(columns: int) -> Work:
    return lambda: grow_by_fields(pa.schema([]), fields(columns))


def grow_by_a_new_schema(columns: int) -> Work:
    return lambda: grow(pa.schema([]), fields(columns))


def grow_by_a_known_schema(columns: int) -> Work:
    return lambda: grow(pa.schema(fields(columns)), fields(columns))


def grow_by_other_types(columns: int) -> Work:
    return lambda: grow(pa.schema(fields(columns)), fields(columns, pa.bool_()))


def grow_by_renamed_fields(columns: int) -> Work:
    renamed = [described(f"new{number}", LONG, aliases=[f"field{number}"]) for number in range(columns)]
    return lambda: grow(pa.schema(fields(columns)), renamed)


def grow_by_names_that_collide(columns: int) -> Work:
    """Delta refuses these characters, so all fields get the same name with a number."""
    names = [f"{number:014b}".replace("0", ",").replace("1", ";") for number in range(columns)]
    return lambda: grow(pa.schema([]), [pa.field(name, LONG) for name in names])


def grow_a_struct(columns: int) -> Work:
    before, after = (pa.struct(fields(count)) for count in (columns // 2, columns))
    return lambda: grow(pa.schema([pa.field("x", before)]), [pa.field("x", after)])


def grow_by_reserved_names(columns: int) -> Work:
    reserved = [pa.field(f"_kafka_{number}", LONG) for number in range(columns)]
    return lambda: grown(pa.schema([]), reserved, ["_error"])


def add_members_to_a_struct_in_a_commit(columns: int) -> Work:
    few, many = (pa.schema([pa.field("x", pa.struct(fields(count)))]) for count in (columns // 2, columns))
    return lambda: missing_columns(few, many)


def plan_an_avro_table(columns: int) -> Work:
    names = [{"name": f"field{number}", "type": "long"} for number in range(columns)]
    text = json.dumps({"type": "record", "name": "Wide", "fields": names})
    schema = RegisteredSchema(id=1, schema_type=SchemaType.AVRO, text=text)
    learned = Learned(schemas=WriterSchemas(known={1: schema}))
    return lambda: plan_decoding(TopicFormat(format="avro", registry="main"), TYPED, learned)


@pytest.mark.parametrize(
    "work",
    [
        *(grow_by_a_known_sample, grow_by_a_new_sample, grow_by_a_new_schema, grow_by_a_known_schema),
        *(grow_by_other_types, grow_by_renamed_fields, grow_by_names_that_collide, grow_a_struct),
        *(grow_by_reserved_names, add_members_to_a_struct_in_a_commit, plan_an_avro_table),
    ],
)
def test_work_is_proportional_to_the_number_of_columns(work: Callable[[int], Work]) -> None:
    calls(work(FEW))  # the first time also fills caches
    assert calls(work(TIMES * FEW)) < 1.5 * TIMES * calls(work(FEW))
