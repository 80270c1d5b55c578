"""A plan is refused if readers could not open its table, or if its rows had no folder."""

from unittest.mock import Mock

import pyarrow as pa
import pytest

from kafka_io.errors import InvalidSchema
from kafka_io.values.column_types import MAX_NESTING, nesting
from pipelines.fetch.decode_plan import _check_nesting, _time_column_warnings, plan_decoding
from pipelines.layout.columns import SCHEMA_ID_COLUMN
from pipelines.layout.layout import TYPED
from resources.errors import ConditionInvalid, LayoutRefused
from resources.settings.topic_formats import TopicFormat


def test_columns_are_as_deep_as_readers_allow_and_no_deeper() -> None:  # fault E15
    type_, deeper = pa.int64(), pa.list_(pa.int64())
    while nesting(deeper) <= MAX_NESTING:
        type_, deeper = deeper, pa.list_(deeper)
    _check_nesting(pa.schema({"id": pa.int64(), "deep": type_}))
    with pytest.raises(InvalidSchema, match="the column deep would be nested deeper than readers of Delta allow"):
        _check_nesting(pa.schema({"id": pa.int64(), "deep": deeper}))


# fault E15
def test_columns_of_the_settings_that_readers_could_not_open_are_refused() -> None:
    too_deep = "map<string, " * 31 + "long" + ">" * 31
    with pytest.raises(InvalidSchema, match="the column x would be nested deeper than readers of Delta allow"):
        plan_decoding(TopicFormat(format="json", columns={"x": too_deep}), TYPED)


def test_a_condition_on_a_hashed_key_needs_its_type() -> None:
    def plan(key_format: str, **rules: str) -> None:
        load = {"skip": "_kafka_key_id = 1", **rules}
        plan_decoding(TopicFormat.model_validate({"format": "json", "key_format": key_format, "load": load}), TYPED)

    with pytest.raises(ConditionInvalid, match="compares _kafka_key_id, which is also dropped, masked or hashed"):
        plan("json", key="hash:people")
    plan("avro", key="hash:people")  # its schema declares the type
    plan("json")


@pytest.mark.parametrize(
    ("partition_by", "columns", "count"),
    [
        ("loaded", {"id": pa.int64()}, 0),
        ("event_day", {"id": pa.int64()}, 0),
        ("at", {}, 0),
        ("at", {SCHEMA_ID_COLUMN: pa.int32()}, 0),
        ("at", {SCHEMA_ID_COLUMN: pa.int32(), "id": pa.int64()}, 1),
        ("at", {"at": pa.timestamp("us", "UTC")}, 0),
        ("at", {"at": pa.date32()}, 0),
    ],
)
def test_a_field_whose_day_is_the_folder_is_missed_only_in_a_table_with_fields(
    partition_by: str, columns: dict[str, pa.DataType], count: int
) -> None:
    plan = Mock(partition_by=partition_by, stored=pa.schema(columns))
    assert len(list(_time_column_warnings(plan))) == count


def test_a_field_without_a_day_is_refused() -> None:
    with pytest.raises(LayoutRefused, match="the column at of the type int64, but only a date or a timestamp"):
        list(_time_column_warnings(Mock(partition_by="at", stored=pa.schema({"at": pa.int64()}))))
