"""JSON values to columns: the oracle's rows or the oracle's refusal, whatever the bytes are."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.values.decoding import DecodedValues
from kafka_io.values.json.decoder import REASONS, FramedJsonDecoder, JsonDecoder
from kafka_io.values.json.reading import JSON_READING, JsonNumbers, JsonReading
from kafka_io.values.kernels.json_program import NOT_AN_INTEGER, OUT_OF_RANGE, WRONG_ZONE
from tests.kafka_io.values.json.documents import SCHEMAS, damaged, documents
from tests.oracles import json_values
from tests.oracles.json_values import Number, Object, Refused

US = pa.timestamp("us", tz="UTC")


def decode(columns: pa.Schema, *values: bytes | None) -> DecodedValues:
    """The rows of these values, checked as Arrow checks them."""
    decoded = JsonDecoder(columns).decode(pa.array(values, pa.binary()))
    decoded.rows.validate(full=True)
    assert len(decoded.rows) == len(values)
    assert decoded.rows.schema == columns
    return decoded


def cell(kind: pa.DataType | pa.Field, text: str) -> Any:
    """The content of a column of this type after it has read this JSON value; the reason if it refuses the value."""
    field = kind.with_name("x") if isinstance(kind, pa.Field) else pa.field("x", kind)
    decoded = decode(pa.schema([field]), f'{{"x": {text}}}'.encode())
    if decoded.failures:
        assert decoded.rows.to_pylist() == [{"x": None}]
        return decoded.failures[0].reason
    return decoded.rows["x"].to_pylist()[0]


def parsed(value: Any, field: pa.Field) -> Any:
    """A value with its JSON texts parsed, as the oracle gives them."""
    kind = field.type
    if value is None:
        return None
    if field.metadata:
        return json.loads(value, object_pairs_hook=Object, parse_int=Number, parse_float=Number)
    if pa.types.is_struct(kind):
        return {member.name: parsed(value[member.name], member) for member in kind}
    if pa.types.is_list(kind):
        return [parsed(item, kind.value_field) for item in value]
    if pa.types.is_map(kind):
        return [(key, parsed(item, kind.item_field)) for key, item in value]
    return value


def check(decoder: JsonDecoder, values: list[bytes | None]) -> None:
    """Compare each row with the oracle's."""
    decoded = decoder.decode(pa.array(values, pa.binary()))
    decoded.rows.validate(full=True)
    assert len(decoded.rows) == len(values)
    refused = {failure.row: failure.reason for failure in decoded.failures}
    assert list(refused) == sorted(refused)
    for index, (value, row) in enumerate(zip(values, decoded.rows.to_pylist(), strict=True)):
        is_refused = False
        try:
            expected = None if value is None else json_values.row(value, decoder.columns)
        except Refused:
            expected, is_refused = None, True
        assert (index in refused) == is_refused, (value, refused.get(index))
        if expected is None:
            assert set(row.values()) <= {None}
        else:
            assert {field.name: parsed(row[field.name], field) for field in decoder.columns} == expected, value


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_each_document_gives_the_row_or_the_refusal_of_the_oracle(data: st.DataObject) -> None:
    columns = data.draw(SCHEMAS)
    document = documents(columns).map(str.encode)
    decoder = JsonDecoder(columns)
    for _ in range(2):  # the second call uses the memory of the first
        values = data.draw(st.lists(st.one_of(document, document, document.flatmap(damaged), st.none()), max_size=6))
        check(decoder, values)


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_bytes_of_any_kind_are_refused_or_read_as_the_oracle_does(values: list[bytes]) -> None:
    check(JsonDecoder(pa.schema({"a": pa.int64()})), [*values])


ROWS = pa.schema({"id": pa.int64(), "text": pa.string()})


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b" ",
        b"{}{}",
        b'{"id": 1}\n{"id": 2}',
        b"null",
        b"[]",
        b"7",
        b'{"id": 1',
        b'{"id": 1}}',
        b'{"id": 1,}',
        b"\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_a_value_that_is_not_one_document_shifts_no_row(bad: bytes) -> None:
    decoded = decode(ROWS, b'{"id": 1, "text": "one"}', bad, b'{"id": 3, "text": "three"}', bad)
    assert decoded.rows["id"].to_pylist() == [1, None, 3, None]
    assert [failure.row for failure in decoded.failures] == [1, 3]
    assert all(failure.reason.isprintable() for failure in decoded.failures)


def test_a_tombstone_is_a_row_of_nulls_and_no_failure() -> None:
    decoded = decode(ROWS, None, b'{"id": 1}')
    assert decoded.rows.to_pylist() == [{"id": None, "text": None}, {"id": 1, "text": None}]
    assert decoded.failures == []


def test_a_slice_of_an_array_is_decoded_from_its_own_offset() -> None:
    values = pa.array([b"{", None, b'{"id": 7}', b'{"id": 8}'], pa.binary()).slice(1, 2)
    assert JsonDecoder(ROWS).decode(values).rows["id"].to_pylist() == [None, 7]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.int64(), "9223372036854775807", 2**63 - 1),
        (pa.int64(), "-9223372036854775808", -(2**63)),
        (pa.int64(), "9223372036854775808", "x: the number is too large for the column (byte 6)"),
        (pa.int64(), "1.5", f"x: {REASONS[NOT_AN_INTEGER]} (byte 6)"),
        (pa.int64(), "1e3", f"x: {REASONS[NOT_AN_INTEGER]} (byte 6)"),
        (pa.int64(), '"12"', "x: the value has another type than the column (byte 6)"),
        (pa.int64(), "012", "x: a number is not valid (byte 6)"),
        (pa.string(), "[1]", "x: the value has another type than the column (byte 6)"),
        (pa.string(), "[1", "x: a comma, colon or closing bracket is missing (byte 6)"),
        (pa.string(), "12", "x: the value has another type than the column (byte 6)"),
        (pa.string(), r'"\ud83d\ude00 \u00e9"', "\U0001f600 é"),
        (pa.string(), r'"\ud83d"', "x: a text contains half of a surrogate pair (byte 6)"),
        (pa.string(), r'"\x41"', "x: a text contains an unknown escape (byte 6)"),
        (pa.string(), '"a\tb"', "x: a text contains a control character without an escape (byte 6)"),
        (pa.float64(), "NaN", "x: no JSON value begins here (byte 6)"),
        (pa.float64(), "1e400", "x: the number is too large for the column (byte 6)"),
        (pa.float64(), "1e-400", 0.0),
        (pa.float64(), "1.7976931348623157e308", 1.7976931348623157e308),
        (pa.float64(), "0.30000000000000004", 0.1 + 0.2),
        (pa.float64(), "5e-324", 5e-324),
        (pa.float64(), "7", 7.0),
        (pa.decimal128(38, 2), "12.30", Decimal("12.30")),
        (pa.decimal128(38, 2), '"-0.07"', Decimal("-0.07")),
        (pa.decimal128(38, 2), "123456789012345678901234567890.5e1", Decimal("1234567890123456789012345678905.00")),
        (pa.decimal128(38, 2), "0.001", "x: the number has more digits after the point than the column (byte 6)"),
        (pa.decimal128(38, 2), "1e36", "x: the number is too large for the column (byte 6)"),
        (pa.date32(), '"2024-02-29"', date(2024, 2, 29)),
        (pa.date32(), '"2023-02-29"', "x: the text is not a date YYYY-MM-DD (byte 6)"),
        (pa.date32(), "19000", "x: the value has another type than the column (byte 6)"),
        (US, '"2013-01-01T06:00:00+02:00"', datetime(2013, 1, 1, 4, tzinfo=UTC)),
        (US, '"2013-01-01T06:00:00.1234567Z"', datetime(2013, 1, 1, 6, 0, 0, 123456, tzinfo=UTC)),
        (US, '"2013-01-01T06:00:00"', f"x: {REASONS[WRONG_ZONE]} (byte 6)"),
        (pa.timestamp("us"), '"1900-01-01 06:00"', datetime.fromisoformat("1900-01-01T06:00")),
        (US, '"yesterday"', "x: the text is not a time of ISO 8601 (byte 6)"),
        (US, "1357020000000", "x: the value has another type than the column (byte 6)"),
        (pa.binary(), '"AP8="', b"\x00\xff"),
        (pa.binary(), '"AP8"', "x: the text is not base64 (byte 6)"),
        (pa.list_(pa.int64()), "[1, null, 3]", [1, None, 3]),
        (pa.list_(pa.int64()), "[1, 2.5]", f"x[]: {REASONS[NOT_AN_INTEGER]} (byte 10)"),
        (pa.map_(pa.string(), pa.int64()), '{"a": 1, "b": null}', [("a", 1), ("b", None)]),
        (pa.struct({"y": pa.int64()}), '{"y": 1, "z": [{}]}', {"y": 1}),
        (pa.struct({"y": pa.int64()}), "{}", {"y": None}),
        (pa.struct({"y": pa.int64()}), '{"y": 1, "y": 1}', "x.y: the key occurs twice (byte 15)"),
        (pa.map_(pa.string(), pa.int64()), '{"a": 1, "a": 1}', "x: a key of the map occurs twice"),  # fault E27
        (pa.list_(pa.map_(pa.string(), pa.int64())), '[{"a": 1}, {"a": 2}]', [[("a", 1)], [("a", 2)]]),
        (pa.bool_(), "true", True),
        (pa.bool_(), "1", "x: the value has another type than the column (byte 6)"),
        (pa.bool_(), "trueish", "x: a comma, colon or closing bracket is missing (byte 10)"),
    ],
)  # fmt: skip
def test_a_column_reads_exactly_what_its_type_says(kind: pa.DataType, text: str, expected: Any) -> None:
    assert cell(kind, text) == expected


# fault A23
@pytest.mark.parametrize(
    ("kind", "reading", "text", "expected"),
    [
        (pa.string(), JsonReading.TEXT, '{"a": [1,  2.50]}', '{"a": [1,  2.50]}'),
        (pa.string(), JsonReading.TEXT, '"a"', '"a"'),
        (US, JsonReading.EPOCH_SECONDS, "-1", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (US, JsonReading.EPOCH_MILLIS, "1357020000123", datetime(2013, 1, 1, 6, 0, 0, 123000, tzinfo=UTC)),
        (US, JsonReading.EPOCH_MICROS, "1357020000000001", datetime(2013, 1, 1, 6, 0, 0, 1, tzinfo=UTC)),
        (US, JsonReading.EPOCH_NANOS, "1357020000000001999", datetime(2013, 1, 1, 6, 0, 0, 1, tzinfo=UTC)),
        (US, JsonReading.EPOCH_MILLIS, "253402300799999", datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (US, JsonReading.EPOCH_MICROS, "253402300799999999", datetime.max.replace(tzinfo=UTC)),
        (US, JsonReading.EPOCH_SECONDS, "253402300799", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (US, JsonReading.EPOCH_MILLIS, "253402300800000", "x: the number is too large for the column (byte 6)"),
        (US, JsonReading.EPOCH_MILLIS, str(2**62), "x: the number is too large for the column (byte 6)"),
        (pa.date32(), JsonReading.EPOCH_DAYS, "15706", date(2013, 1, 1)),
        (pa.date32(), JsonReading.EPOCH_DAYS, '"2013-01-01"', "x: the value has another type than the column (byte 6)"),
    ],
)  # fmt: skip
def test_metadata_of_a_field_says_how_it_is_read(
    kind: pa.DataType, reading: JsonReading, text: str, expected: Any
) -> None:
    assert cell(pa.field("x", kind, metadata={JSON_READING: reading.value}), text) == expected


def test_invalid_utf_8_is_refused_also_in_what_no_column_needs() -> None:
    decoded = decode(ROWS, b'{"text": "\xff"}', b'{"other": "\xc3"}', b'{"\xe9": 1}')
    assert [failure.reason for failure in decoded.failures] == [
        "text: a text is not valid UTF-8 (byte 9)",
        "a text is not valid UTF-8 (byte 1)",
        "a text is not valid UTF-8 (byte 1)",
    ]


def test_keys_with_escapes_and_keys_in_any_order_find_their_columns() -> None:
    columns = pa.schema({"a": pa.int64(), 'q"': pa.int64(), "é": pa.int64()})
    decoded = decode(columns, b'{"a":1,"q\\"":2,"\\u00e9":3}', '{"é":3,"a":1,"q\\u0022":2}'.encode(), b'{"\\u0061":1}')
    assert [list(row.values()) for row in decoded.rows.to_pylist()] == [[1, 2, 3], [1, 2, 3], [1, None, None]]


def test_deep_documents_are_refused_and_end() -> None:
    deep = b'{"other": ' + b"[" * 100_000
    fine = b'{"other": ' + b"[" * 127 + b"]" * 127 + b"}"
    assert [failure.row for failure in decode(ROWS, deep, fine).failures] == [0]


def test_a_second_column_takes_the_values_that_the_first_cannot_hold() -> None:
    columns = pa.schema([("price", pa.int64()), pa.field("price_2", pa.string(), metadata={"field": "price"})])
    decoded = decode(columns, b'{"price": 1}', b'{"price": "1"}', b'{"price": null}', b'{"price": true}')
    rows = [tuple(row.values()) for row in decoded.rows.to_pylist()]
    assert rows == [(1, None), (None, "1"), (None, None), (None, None)]
    assert [failure.row for failure in decoded.failures] == [3]


def test_an_array_whose_items_the_first_column_cannot_hold_goes_into_a_second_one() -> None:
    item = pa.struct({"n": pa.decimal128(38, 2), "inner": pa.list_(pa.float64())})
    columns = pa.schema(
        [
            pa.field("tags", pa.list_(pa.list_(pa.int64()))),
            pa.field("tags_2", pa.list_(item), metadata={"field": "tags"}),
            pa.field("tags_3", pa.string(), metadata={JSON_READING: "text", "field": "tags"}),
            pa.field("after", pa.int64()),
        ]
    )
    late = 0.30000000000000004  # Arrow computes it after the kernel
    values = [
        {"tags": [[1, 2], [], [3]], "after": 1},
        {"tags": [[4], ["x"]], "after": 2},
        {"tags": [{"n": 12345678901234567890.25, "inner": [late]}, {"n": 1, "inner": [late, "x"]}], "after": 3},
        {"tags": [{"n": 1, "inner": [late, 2.0]}], "after": 4},
        {"tags": [[5]], "after": 5},
        {"after": 6, "tags": "text"},
    ]
    decoded = decode(columns, *(json.dumps(value).encode() for value in values), b'{"tags": [[1], ["x]}')
    rows = [tuple(row.values()) for row in decoded.rows.to_pylist()]
    assert rows == [
        ([[1, 2], [], [3]], None, None, 1),
        (None, None, '[[4], ["x"]]', 2),
        (None, None, json.dumps(values[2]["tags"]), 3),
        (None, [{"n": Decimal("1.00"), "inner": [late, 2.0]}], None, 4),
        ([[5]], None, None, 5),
        (None, None, '"text"', 6),
        (None, None, None, None),
    ]
    assert [failure.reason for failure in decoded.failures] == ["tags_3: the document is not complete (byte 9)"]


def test_an_object_with_a_key_that_its_struct_lacks_goes_into_the_column_of_json_text_if_there_is_one() -> None:
    text = {"json": "text"}
    members = pa.struct([("a", pa.int64()), pa.field("in", pa.list_(pa.struct({"b": pa.decimal128(38, 0)})))])
    columns = pa.schema(
        [
            pa.field("x", members),
            pa.field("x_2", pa.int64(), metadata={"field": "x"}),
            pa.field("x_3", pa.string(), metadata={"field": "x", **text}),
            pa.field("y", pa.struct({"a": pa.int64()})),
        ]
    )
    fitting = {"a": 1, "in": [{"b": 2**70}]}
    values = (
        {"x": fitting, "y": {"a": 2}},
        {"x": {**fitting, "new": 3}, "y": {"a": 2, "new": 4}},
        {"x": {"in": [{"b": 2**70}, {"b": 1, "new": 5}]}, "y": None},
        {"x": {**fitting, "null": None, "list": []}},
        {"x": 6},
    )
    decoded = decode(columns, *(json.dumps(value).encode() for value in values))
    assert decoded.failures == []
    assert list(decoded.new_keys) == [1, 2]
    rows = [tuple(row.values()) for row in decoded.rows.to_pylist()]
    in_struct = {"a": 1, "in": [{"b": Decimal(2**70)}]}
    assert rows == [
        (in_struct, None, None, {"a": 2}),
        (None, None, json.dumps(values[1]["x"]), {"a": 2}),
        (None, None, json.dumps(values[2]["x"]), None),
        (in_struct, None, None, None),
        (None, 6, None, None),
    ]


# fault E27
def test_only_the_document_with_a_key_twice_in_a_map_is_refused() -> None:
    tags = pa.map_(pa.string(), pa.int64())
    columns = pa.schema({"id": pa.int64(), "tags": tags, "parts": pa.list_(pa.struct({"tags": tags}))})
    more = ',"tags":{"a":1,"b":2},"parts":[{"tags":{"a":1}},{"tags":{"b":1,"a":1}},{"tags":{"b":1,"b":2}}]'
    documents = [
        '{"id":1,"tags":{"a":1,"b":2}}',
        f'{{"id":2{more}}}',
        '{"id":3,"tags":{"b":1,"a":2},"parts":[{"tags":{"b":1}}]}',
        '{"id":4,"tags":{"b":1,"c":2,"b":1},"new":1}',
        '{"id":5,"tags":{}}',
    ]
    decoded = decode(columns, None, *map(str.encode, documents), b"{")
    assert decoded.rows["id"].to_pylist() == [None, 1, None, 3, None, 5, None]
    assert decoded.rows["tags"].to_pylist()[3] == [("b", 1), ("a", 2)]
    assert [(failure.row, failure.reason) for failure in decoded.failures[:2]] == [
        (2, "parts[].tags: a key of the map occurs twice"),
        (4, "tags: a key of the map occurs twice"),
    ]
    assert [failure.row for failure in decoded.failures] == [2, 4, 6]
    assert decoded.new_keys.tolist() == []


def test_a_column_is_found_by_its_aliases() -> None:
    columns = pa.schema([pa.field("price", pa.int64(), metadata={"aliases": "cost,sum"})])
    decoded = decode(columns, b'{"price": 1}', b'{"cost": 2}', b'{"sum": 3}', b'{"cost": 4, "sum": 4}')
    assert decoded.rows["price"].to_pylist() == [1, 2, 3, None]


def test_column_buffers_grow_as_far_as_the_values_need() -> None:
    columns = pa.schema(
        {"text": pa.string(), "items": pa.list_(pa.struct({"a": pa.string(), "b": pa.list_(pa.float64())}))}
    )
    big = {"text": "x" * 20_000, "items": [{"a": "é" * 50, "b": [0.30000000000000004] * 9}] * 60}
    values = [json.dumps(big).encode(), b"{", json.dumps(big).encode()]
    decoded = decode(columns, *values)
    assert decoded.rows.to_pylist() == [big, {"text": None, "items": None}, big]


def test_a_frame_is_read_before_the_document_and_unknown_ids_are_no_failures() -> None:
    known = {7}
    decoder = FramedJsonDecoder(ROWS, known)
    frames = [bytes([0, 0, 0, 0, number]) for number in (7, 8)]
    values = pa.array(
        [frames[0] + b'{"id": 1}', frames[1] + b'{"id": 2}', b'{"id": 3}', None, frames[0] + b"{"], pa.binary()
    )
    decoded = decoder.decode(values)
    assert decoded.rows["id"].to_pylist() == [1, None, None, None, None]
    assert decoded.unknown_schemas == {8}
    assert [failure.row for failure in decoded.failures] == [2, 4]
    known.add(8)
    assert decoder.decode(values).rows["id"].to_pylist() == [1, 2, None, None, None]


def test_answers_stay_valid_after_the_next_call() -> None:
    decoder = JsonDecoder(ROWS)
    first = decoder.decode(pa.array([b'{"id": 1, "text": "one"}'], pa.binary()))
    decoder.decode(pa.array([b'{"id": 2, "text": "two"}'], pa.binary()))
    assert first.rows.to_pylist() == [{"id": 1, "text": "one"}]


def test_no_values_give_no_rows() -> None:
    assert len(decode(ROWS).rows) == 0
    assert len(JsonDecoder(pa.schema([])).decode(pa.array([b"{}", None], pa.binary())).rows) == 2


def test_a_column_of_another_type_is_refused_when_the_decoder_is_made() -> None:
    with pytest.raises(TypeError, match="column a\\.b\\[\\] has type int32, which no decoder of values fills"):
        JsonDecoder(pa.schema({"a": pa.struct({"b": pa.list_(pa.int32())})}))


def test_every_status_has_a_reason_without_bytes_of_the_value() -> None:
    assert len(set(REASONS.values())) == len(REASONS) == 22


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.0", 1),
        ("1e2", 100),
        ("-1.50e1", -15),
        ("0.0", 0),
        ("0e99", 0),
        ("9.2e18", 9_200_000_000_000_000_000),
        ("1.5", NOT_AN_INTEGER),
        ("1e-1", NOT_AN_INTEGER),
        ("1e-400", NOT_AN_INTEGER),
        ("9.3e18", OUT_OF_RANGE),
        ("1e30", OUT_OF_RANGE),
    ],
)
def test_a_declared_long_holds_integers_however_they_are_written(text: str, expected: int) -> None:  # fault F15
    value = pa.array([f'{{"x": {text}}}'.encode()], pa.binary())
    columns = pa.schema({"x": pa.int64()})
    decoded = JsonDecoder(columns, numbers=JsonNumbers.DECLARED).decode(value)
    reasons = [failure.reason for failure in decoded.failures]
    is_reason = expected in (NOT_AN_INTEGER, OUT_OF_RANGE)
    assert (decoded.rows["x"].to_pylist(), bool(reasons)) == ([None if is_reason else expected], is_reason)
    assert not is_reason or REASONS[expected] in reasons[0]
    assert "fraction or an exponent" in JsonDecoder(columns).decode(value).failures[0].reason


def test_an_inferred_double_rounds_no_integer_and_reports_what_it_rounds() -> None:  # faults A17, F13
    numbers = ["1", "9007199254740992", "9007199254740993", "1e17", "100000000000000000", "1000000000000000000"]
    numbers += ["0.12345678901234567", "0.123456789012345678", "1.0000000000000000000e0"]
    values = pa.array([f'{{"x": {number}}}'.encode() for number in numbers], pa.binary())
    decoded = JsonDecoder(pa.schema({"x": pa.float64()}), numbers=JsonNumbers.INFERRED).decode(values)
    assert [failure.row for failure in decoded.failures] == [2, 5]
    assert decoded.rounded.tolist() == [7, 8]
    assert JsonDecoder(pa.schema({"x": pa.float64()})).decode(values).failures == []
