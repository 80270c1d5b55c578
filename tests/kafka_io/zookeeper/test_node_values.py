"""JSON from other programs is read strictly, and refused with one short line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.errors import NodeMalformed
from kafka_io.zookeeper.node_values import NodeObject, looks_like_json

PATH = "/brokers/ids/7"


def parse(data: bytes) -> NodeObject:
    return NodeObject.parse(PATH, data, max_bytes=100_000)


def test_fields_are_read_by_their_types() -> None:
    node = parse(b' { "a": 5, "t": "x", "n": null, "s": ["x", ""], "o": {"a": 6}, "f": 1.5, "b": true }\n')
    assert node.integer("a", min_value=5, max_value=5) == 5
    assert node.text("t") == "x"
    assert node.texts("s") == ("x", "")
    assert node.object("o").integer("a") == 6
    assert [node.has(name) for name in ("a", "n", "none")] == [True, False, False]


# faults Z04, X05
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{}}",
        b"null",
        b"[1]",
        b"5",
        b'"text"',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1, "a": 1}',
        b'{"o": {"a": 1, "a": 2}}',
        b'{"a": 01}',
        b'{"a": ' + b"1" * 50_000 + b"}",
        b'{"a": ' + b"[" * 40_000 + b"]" * 40_000 + b"}",
        b'{"a": ' + b'{"a": ' * 15_000,
        b'{"a": "\xff"}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": "' + b"x" * 100_000 + b'"}',
        b"{\x1b[31m",
    ],
)
def test_a_value_that_is_not_a_json_object_is_refused_by_path(data: bytes) -> None:
    with pytest.raises(NodeMalformed, match=PATH) as caught:
        parse(data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


# faults Z04, X05
@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("integer", ["true", "1.0", '"1"', "[1]", "{}", "-1", "2147483648", "9" * 4000, "null"]),
        ("text", ["1", '""', '"\\n"', '"\\u001b[31m"', '"\\ud800"', '["x"]', '"' + "x\\n" * 9_000 + '"']),
        ("texts", ['"x"', "[1]", '[["x"]]', "[null]"]),
        ("object", ["1", "[]", '"x"', "[" * 400 + "]" * 400]),
    ],
)
def test_a_field_of_another_type_is_refused(question: str, values: list[str]) -> None:
    for value in values:
        node = parse(f'{{"field": {value}}}'.encode())
        with pytest.raises(NodeMalformed, match=f"'{PATH}' is malformed: .*'field'") as caught:
            getattr(node, question)("field")
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300
    with pytest.raises(NodeMalformed, match="it has no 'other'"):
        getattr(node, question)("other")


def test_json_is_recognized_by_its_first_character() -> None:
    assert [looks_like_json(data) for data in (b"{", b' \n{"a"', b"", b"a-1:a:9092", b"2", b"\xff{")] == [
        *(True, True),
        *(False, False, False, False),
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_any_object_is_read_as_it_was_written(fields: dict[str, object]) -> None:
    assert parse(json.dumps(fields).encode()).fields == fields
