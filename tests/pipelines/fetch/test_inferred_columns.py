"""The columns of JSON without a declared schema come from its values, and grow with them; no key is lost."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.values import columns
from kafka_io.values.columns import described
from kafka_io.values.json.inference import DECODED_DEPTH, MAX_VALUES
from kafka_io.values.kernels.json_program import MAX_DEPTH
from pipelines.fetch.decoding import Decoding, no_registry
from pipelines.layout.layout import RAW, TYPED, TableLayout
from pipelines.rewrites.topic_schema import topic_schema
from resources.errors import LakeRefused, TooManyColumns
from resources.settings.topic_formats import Format, TopicFormat
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import CountedFetches, TypedTopic, append, log_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it


def documents(*values: Any) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([*documents({"id": 1, "tags": ["a"], "place": {"city": "Ulm"}, "no": None}), None])}
    with fake:
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json", "max_bad_share": 1})


def test_the_first_load_makes_columns_of_the_keys_and_the_table_remembers_them(topic: TypedTopic) -> None:
    assert topic_schema_names(topic) == []
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.warnings) == (None, 2, 0, ())
    assert topic.rows("id", "tags", "place", "_tombstone") == [
        {"id": 1, "tags": ["a"], "place": {"city": "Ulm"}, "_tombstone": False},
        {"id": None, "tags": None, "place": None, "_tombstone": True},
    ]
    assert topic_schema_names(topic) == ["id", "tags", "place"]
    assert topic.deep().problems == ()


def topic_schema_names(topic: TypedTopic) -> list[str]:
    return [column.name for column in topic_schema(topic.table, topic.settings.format_of("clicks")).columns]


def test_a_load_without_new_keys_fetches_once(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], documents({"id": 2}, {"tags": []}, {"no": None, "place": {}, "more": [], "other": {}}))
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert (load.error, load.rows, load.bad_records, fetches.sizes) == (None, 3, 0, [3])


def test_a_key_that_comes_later_is_a_column_in_the_entry_of_its_first_rows(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], documents({"id": 2, "no": True, "place": {"city": "Bonn", "code": 53}}, {"id": 3}))
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.warnings) == (None, 2, 0, ())
    log = Path(topic.table.uri) / "_delta_log" / f"{2:020d}.json"
    assert {kind for line in log.read_text().splitlines() for kind in json.loads(line)} == {
        "commitInfo", "add", "metaData", "txn",
    }  # fmt: skip
    rows = topic.rows("id", "no", "place")
    assert rows[0] == {"id": 1, "no": None, "place": {"city": "Ulm", "code": None}}
    assert rows[2:] == [
        {"id": 2, "no": True, "place": {"city": "Bonn", "code": 53}},
        {"id": 3, "no": None, "place": None},
    ]
    assert topic.deep().problems == ()


def test_a_value_of_another_type_gets_another_column_with_a_warning(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], documents({"id": 1.5}, {"id": 7}, {"id": "x"}))
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert load.warnings == (
        "the field 'id' had the type int64 before: the new column id_2 holds it, with the type string",
    )
    assert [tuple(row.values()) for row in topic.rows("id", "id_2")[2:]] == [(None, "1.5"), (7, None), (None, '"x"')]
    append(topic.fake.logs[0], documents({"id": [1]}, {"id": 8}))
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert (load.error, load.bad_records, load.warnings, len(fetches.sizes)) == (None, 0, (), 1)
    assert [tuple(row.values()) for row in topic.rows("id", "id_2")[5:]] == [(None, "[1]"), (8, None)]
    assert topic.deep().problems == ()


def test_an_array_with_items_of_another_type_goes_into_a_column_of_its_own(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], documents({"sizes": [1, 2]}))
    assert topic.load().error is None
    append(topic.fake.logs[0], documents({"sizes": [3]}, {"sizes": ["x"]}, {"sizes": [4, "y"]}, {"sizes": []}))
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    names = ("sizes", "sizes_2")
    first = len(topic.rows("sizes")) - 4
    assert [tuple(row.values()) for row in topic.rows(*names)[first:]] == [
        ([3], None), (None, '["x"]'), (None, '[4, "y"]'), ([], None),
    ]  # fmt: skip
    assert topic.deep().problems == ()


def test_an_empty_array_is_not_null(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], documents({"tags": []}, {"tags": None}, {"tags": ["b"]}))
    assert topic.load().error is None
    assert [row["tags"] for row in topic.rows("tags")][2:] == [[], None, ["b"]]
    assert topic.rows("_kafka_headers")[0] == {"_kafka_headers": None}
    assert topic.deep().problems == ()


def test_an_empty_object_or_array_that_no_column_of_its_key_holds_is_kept_as_json_text(topic: TypedTopic) -> None:
    """Some producers write an empty object as [], so this must not fill a table with bad records."""
    topic.load()
    empty = documents({"id": {}}, {"id": []}, {"place": []}, {"tags": {}}, {"no": {}})
    append(topic.fake.logs[0], empty)
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert load.warnings == tuple(
        f"the field {name!r} had the type {kind} before: the new column {name}_2 holds it, with the type string"
        for name, kind in (("id", "int64"), ("place", "struct<city: string>"), ("tags", "list<element: string>"))
    )
    assert topic_schema_names(topic) == ["id", "tags", "place", "id_2", "place_2", "tags_2"]
    rows = topic.rows("id_2", "place_2", "tags_2")[2:]
    assert [tuple(row.values()) for row in rows] == [
        ("{}", None, None), ("[]", None, None), (None, "[]", None), (None, None, "{}"), (None, None, None),
    ]  # fmt: skip
    append(topic.fake.logs[0], documents({"id": {}, "place": {}, "tags": []}, {"id": {"a": 1}}, {"id": 8}))
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert (load.error, load.bad_records, load.warnings, len(fetches.sizes)) == (None, 0, (), 1)
    assert [tuple(row.values()) for row in topic.rows("id", "id_2")[7:]] == [
        (None, "{}"),
        (None, '{"a": 1}'),
        (8, None),
    ]
    assert topic.deep().problems == ()


def test_an_empty_value_that_was_loaded_before_its_key_had_a_column_is_null_until_a_replay(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], documents({"id": 2, "no": []}))
    topic.load()
    append(topic.fake.logs[0], documents({"id": 3, "no": 5}))
    load = topic.load()
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    assert [row["no"] for row in topic.rows("no")] == [None, None, None, 5]
    assert topic.deep().problems == ()
    assert topic.replay().error is None
    assert [tuple(row.values()) for row in topic.rows("no", "no_2")][2:] == [(None, "[]"), (5, None)]
    assert topic.deep().problems == ()


@pytest.mark.parametrize(
    ("empty", "later"),
    [
        ({}, {"a": 1}),
        ({"a": {}, "b": [{}], "c": None}, {"a": {"x": 1}, "b": [{"y": 1}]}),
        ([], ["a"]),
        ([[], {}, None], ["a", 1]),
        ([{"b": 1}, {"b": 2, "a": {}}], [{"a": {"x": 1}}]),
    ],
)
def test_a_deep_verify_takes_null_for_an_empty_value_of_a_key_that_had_no_column(  # fault E28
    empty: Any, later: Any, topic: TypedTopic
) -> None:
    for value in (empty, later, empty):
        append(topic.fake.logs[0], documents({"id": 2, "no": value}))
        assert topic.load().bad_records == 0
    assert topic.deep().problems == ()


def test_what_a_column_of_json_text_holds_is_read_alike_by_later_loads(topic: TypedTopic) -> None:
    """Delta has no such type: the metadata of the column says it, also inside of structs."""
    mixed = documents({"any": 1, "deep": {"any": [1]}, "list": [1, "a"]}, {"any": "x", "deep": {"any": 2}})
    append(topic.fake.logs[0], mixed)
    topic.load()
    fields = {field.name: json.loads(field.to_json()) for field in DeltaTable(topic.table.uri).schema().fields}
    assert [fields[name]["metadata"] for name in ("any", "list")] == [{"penstock.json": "text"}] * 2
    append(topic.fake.logs[0], documents({"any": True, "deep": {"any": None}, "list": ["b"]}))
    load = topic.load()
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    assert [row["any"] for row in topic.rows("any")][2:] == ["1", '"x"', "true"]
    assert [row["list"] for row in topic.rows("list")][2:] == ['[1, "a"]', None, '["b"]']
    assert topic.deep().problems == ()


def test_a_record_that_is_no_object_is_kept_and_gives_no_column(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], [b"", b"[1]", b'{"x": 1', b'{"id": 1, "id": 2}', b"\xff", b'{"id": 4}'])
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 8, 5)
    assert topic_schema_names(topic) == ["id", "tags", "place"]
    assert topic.rows("id")[-1] == {"id": 4}


def test_a_topic_without_an_object_loads_and_gets_its_columns_later(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([None, b"{}", b"x"])}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 3, 1)
    append(topic.fake.logs[0], documents({"id": 1}))
    assert topic.load().error is None
    assert [row["id"] for row in topic.rows("id")] == [None, None, None, 1]


def test_a_large_first_load_reads_a_sample_before_it_and_keys_after_the_sample_are_not_lost(topic: TypedTopic) -> None:
    late = documents({"id": 5, "late": {"x": "y"}})
    topic.fake.logs = {number: log_of([b'{"id": 1}'] * (2 * MAX_VALUES)) for number in (0, 1)}
    append(topic.fake.logs[1], late)
    fetches = CountedFetches()
    load = topic.load(fetch=fetches)
    assert (load.error, load.rows, load.bad_records) == (None, 4 * MAX_VALUES + 1, 0)
    assert fetches.sizes == [2 * MAX_VALUES, 4 * MAX_VALUES + 1, 2 * MAX_VALUES + 1]
    assert topic.rows("late")[-1] == {"late": {"x": "y"}}


def test_values_of_slices_decide_the_type_of_a_new_column_together(topic: TypedTopic) -> None:
    topic.fake.logs = {0: log_of([b'{"a": 1, "b": 1}'] * 3), 1: log_of([b'{"a": 0.5, "b": "x"}'] * 3)}
    load = topic.load()
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    assert [tuple(row.values()) for row in topic.rows("a", "b")] == [(1.0, "1")] * 3 + [(0.5, '"x"')] * 3


def test_keys_that_are_names_are_refused_before_they_are_thousands_of_columns(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], documents(*({f"user{number}": number} for number in range(1_100))))
    load = topic.load()
    assert load.error is not None
    assert load.error.startswith("TooManyColumns: the keys of the objects would need")
    assert DeltaTable(topic.table.uri).version() == 0
    topic.format_ = {**topic.format_, "columns": {"id": "long"}}
    assert topic.load().rows == 1_102


def test_a_replay_gives_columns_to_rows_that_were_loaded_with_other_settings(topic: TypedTopic) -> None:
    topic.format_ = {**topic.format_, "columns": {"id": "long"}}
    topic.load()
    topic.format_ = {"format": "json", "max_bad_share": 1}
    replayed = topic.replay()
    assert (replayed.error, replayed.changed) == (None, True)
    assert topic.rows("id", "place")[0] == {"id": 1, "place": {"city": "Ulm"}}
    assert topic.deep().problems == ()


@pytest.mark.parametrize(
    ("format_", "layout", "needed"),
    [
        ("raw", RAW, False),
        ("text", TYPED, False),
        ("json", TYPED, True),
        ("json", replace(TYPED, values=pa.schema([described("id", pa.int64())])), False),
    ],
)
def test_a_sample_is_read_only_if_nothing_else_says_what_the_columns_are(
    format_: Format, layout: TableLayout, needed: bool
) -> None:
    snapshot: Any = Mock(entry=None, layout=layout)
    assert Decoding(TopicFormat(format=format_), snapshot, no_registry).needs_sample is needed


def test_keys_may_need_exactly_the_maximum_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.fetch.decoding._MAX_COLUMNS", 2)
    snapshot: Any = Mock(entry=None, layout=TYPED)
    decoding = Decoding(TopicFormat(format="json"), snapshot, no_registry)
    decoding.learn((), [described(name, pa.int64()) for name in ("a", "b")])
    with pytest.raises(TooManyColumns, match="would need 3 columns, and 2 are allowed"):
        decoding.learn((), [described("c", pa.int64())])


def test_a_nul_in_a_name_is_replaced_with_a_warning(topic: TypedTopic) -> None:  # fault E01
    append(topic.fake.logs[0], documents({"a\0b": 1, "c": [{"d\0": 2}]}))
    load = topic.load()
    assert (load.error, load.warnings) == (None, (
        "the field 'a\\x00b' has a name that is reserved or taken: the new column a_b holds it, with the type int64",
        "the field 'd\\x00' has a NUL in its name: the member c.d_ of a column holds it",
    ))  # fmt: skip
    assert topic.rows("a_b", "c")[-1] == {"a_b": 1, "c": [{"d_": 2}]}
    append(topic.fake.logs[0], documents({"a\0b": 1, "c": [{"d\0": 2}]}))
    assert topic.load().warnings == ()


def test_a_table_with_a_nul_in_a_name_stops_with_a_way_on(topic: TypedTopic) -> None:  # fault E01
    topic.load()
    append(topic.fake.logs[0], documents({"x": [{"a\0b": 1}]}))
    with patch.object(columns, "_REFUSED", re.compile("[ ]")):  # as in versions before 0.7
        assert topic.load().error is None
    append(topic.fake.logs[0], documents({"id": 3}))
    assert "no reader opens the table" in str(topic.load().error)
    with pytest.raises(LakeRefused, match=r"a column with a NUL in its name, 'a\\x00b'"):
        topic.table.snapshot()
    log = Path(topic.table.uri) / "_delta_log"
    damaged = [path for path in log.glob("0*.json") if "u0000" in path.read_text()]
    [first] = damaged
    first.rename(topic.folder / "taken back")
    load = topic.load()
    assert (load.error, load.rows) == (None, 2)
    assert topic.rows("x")[-2:] == [{"x": [{"a_b": 1}]}, {"x": None}]
    assert topic.deep().problems == ()


@pytest.mark.parametrize("number", [2**63 - 1, -(2**53) - 1, 2**63, 10**37, 10**40])
def test_an_integer_that_a_double_would_round_keeps_its_digits(topic: TypedTopic, number: int) -> None:  # fault A17
    append(topic.fake.logs[0], documents({"x": 0.5, "y": [{"z": 0.5}]}))
    topic.load()
    append(topic.fake.logs[0], documents({"x": number, "y": [{"z": 1}]}, {"x": 2**53}, {"y": [{"z": number}]}))
    load = topic.load()
    assert (load.error, load.bad_records, len(load.warnings)) == (None, 0, 1)
    rows = topic.rows("x", "x_2", "y")[-3:]
    assert [row["x"] for row in rows] == [None, 2.0**53, None]
    assert int(rows[0]["x_2"]) == number
    items = [[(item["z"], item["z_2"]) for item in row["y"] or ()] for row in rows]
    assert (items[:2], items[2][0][0], int(items[2][0][1])) == ([[(1.0, None)], []], None, number)
    assert topic.deep().problems == ()


def test_the_first_sample_keeps_all_digits(topic: TypedTopic) -> None:  # fault A17
    append(topic.fake.logs[0], documents({"x": 0.5, "y": 2**63 - 1, "z": 10**40}, {"x": 2**63 - 1, "y": 1, "z": 1}))
    assert topic.load().error is None
    assert [tuple(row.values()) for row in topic.rows("x", "y", "z")[-2:]] == [
        ("0.5", 2**63 - 1, str(10**40)), (str(2**63 - 1), 1, "1"),
    ]  # fmt: skip


def test_a_number_with_more_digits_than_a_double_keeps_is_a_warning(topic: TypedTopic) -> None:  # faults A17, F13
    values = [b'{"x": 0.1}', b'{"x": 0.12345678901234567}', b'{"x": [0.123456789012345678]}', b'{"x": {', None]
    append(topic.fake.logs[0], documents({"x": 0.5}))
    topic.load()
    append(topic.fake.logs[0], [*values, b'{"x": 1.123456789012345678}', b'{"x": -1.123456789012345678e5}'])
    load = topic.load()
    assert load.error is None
    [warning] = [warning for warning in load.warnings if "17 digits" in warning]
    assert warning == (
        "3 records have a number with more than 17 digits, which its column of the type double rounds; the first one "
        "is at offset 5 of partition 0: declare the types with `columns` to keep all digits"
    )
    topic.format_ = {**topic.format_, "columns": {"x": "double"}}
    append(topic.fake.logs[0], [b'{"x": 1.123456789012345678}'])
    assert topic.load().warnings == ()


def test_the_keys_of_an_object_in_a_personal_field_are_no_columns(topic: TypedTopic) -> None:  # fault Y04
    topic.format_ = {**topic.format_, "personal": ["by", "who.id", "mails", "id"]}
    topic.load()
    people = {"by": {"zelda@a.org": 1}, "who": {"id": {"zelda@b.org": 2}, "city": "Ulm"}, "mails": [{"zelda@c.org": 3}]}
    append(topic.fake.logs[0], [*documents(people, {"id": {"zelda@d.org": 4}, "by": {"adam@a.org": 1}})])
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert topic.rows("by", "who", "mails", "id", "id_2")[-2:] == [
        {
            "by": '{"zelda@a.org": 1}',
            "who": {"id": '{"zelda@b.org": 2}', "city": "Ulm"},
            "mails": '[{"zelda@c.org": 3}]',
            "id": None,
            "id_2": None,
        },
        {"by": '{"adam@a.org": 1}', "who": None, "mails": None, "id": None, "id_2": '{"zelda@d.org": 4}'},
    ]
    append(topic.fake.logs[0], documents({"by": {"eve@a.org": 1}, "mails": [], "id": {"x@d.org": {}}}))
    fetches = CountedFetches()
    assert (topic.load(fetch=fetches).error, fetches.sizes) == (None, [1])
    schema = DeltaTable(topic.table.uri).schema().to_json()
    assert ".org" not in schema
    assert topic.deep().problems == ()


def test_a_personal_field_whose_keys_are_columns_already_is_refused(topic: TypedTopic) -> None:  # fault Y04
    topic.load()
    topic.format_ = {**topic.format_, "personal": ["place"]}
    append(topic.fake.logs[0], documents({"id": 2}))
    assert "the field place, or one inside it, whose objects have become the type struct" in str(topic.load().error)
    topic.format_ = {**topic.format_, "personal": ["place.city"]}
    assert topic.load().error is None


@pytest.mark.parametrize(
    "bad",
    [
        b'{"id": 1, "id": 2, "zelda@a.org": 1}',
        b'{"zelda@a.org": 1, "zelda@a.org": 2}',
        b'{"x": {"zelda@a.org": 1, "zelda@a.org": 2}}',
        b'{"zelda@a.org": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"zelda@a.org": 1, "b": nope}',
    ],
)
def test_the_keys_of_a_record_that_does_not_decode_are_no_columns(topic: TypedTopic, bad: bytes) -> None:
    # fault Y04
    append(topic.fake.logs[0], [bad, *documents({"new": 1})])
    for _ in range(2):
        load = topic.load()
        assert (load.error, load.bad_records) == (None, 1)
        rows = topic.rows("_error", "_raw", "new")
        assert "zelda" not in str(DeltaTable(topic.table.uri).schema().to_json())
        assert "zelda" not in str([row["_error"] for row in rows])  # a reason has no value and no key of an object
        assert [row["_raw"] for row in rows if row["_error"]][-1] == bad
        assert topic.deep().problems == ()
        append(topic.fake.logs[0], [bad, *documents({"new": None})])


def test_a_number_that_no_double_holds_is_kept_as_text(topic: TypedTopic) -> None:
    append(topic.fake.logs[0], [b'{"huge": 1e999}'])
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    assert topic.rows("huge")[-1] == {"huge": "1e999"}


def test_a_sample_leaves_out_what_the_decoder_refuses_as_too_deep() -> None:
    assert DECODED_DEPTH == MAX_DEPTH
