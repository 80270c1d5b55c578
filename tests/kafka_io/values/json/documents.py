"""Schemas, documents for them and damaged documents, for Hypothesis and for the fuzzer."""

import base64
import json
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

NAMES = st.sampled_from(["id", "a", "b", "long name", "naïve", 'quo"te', "customer_identifier", "", "\U0001f600"])
SCALARS = [
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", tz="UTC"),
    pa.timestamp("us"),
    pa.decimal128(38, 2),
    pa.decimal128(38, 0),
    pa.decimal128(9, 9),
]
INTEGERS = st.one_of(
    st.integers(-10, 10),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**18 - 1, 10**18, 10**19, 2**53 + 1]),
    st.integers(-(2**64), 2**64),
)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(
    INTEGERS.map(str),
    DOUBLES.map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
)
TEXTS = st.one_of(st.text(max_size=12), st.text('abc \\"/\n\x00\x7fé€😀', max_size=40))
MOMENTS = st.one_of(
    st.datetimes().flatmap(
        lambda moment: st.sampled_from(
            [
                moment.isoformat(),
                moment.isoformat(sep=" ") + "Z",
                moment.isoformat() + "+02:00",
                moment.isoformat(timespec="minutes") + "-1130",
                moment.isoformat(timespec="milliseconds") + "z",
                moment.isoformat(timespec="seconds") + ".123456789Z",
                moment.date().isoformat(),
            ]
        )
    ),
    st.from_regex(r"[0-2][09][0-9]{2}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9])?", fullmatch=True),
)


def fields(depth: int = 2) -> st.SearchStrategy[list[pa.Field]]:
    """The fields of a struct."""
    return st.lists(
        st.builds(lambda name, field: field.with_name(name), NAMES, st.deferred(lambda: field_types(depth))),
        max_size=5,
        unique_by=lambda field: field.name,
    )


def field_types(depth: int) -> st.SearchStrategy[pa.Field]:
    """Fields of any type that is not deeper than `depth`."""
    leaves = st.one_of(
        st.sampled_from([pa.field("x", kind) for kind in SCALARS]),
        st.just(pa.field("x", pa.string(), metadata={"json": "text"})),
    )
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: field_types(depth - 1))
    return st.one_of(
        leaves,
        inner.map(lambda field: pa.field("x", pa.list_(field.with_name("item")))),
        inner.map(lambda field: pa.field("x", pa.map_(pa.string(), field.with_name("value")))),
        fields(depth - 1).map(lambda members: pa.field("x", pa.struct(members))),
    )


SCHEMAS = fields().map(pa.schema)


def texts_of(value: str) -> st.SearchStrategy[str]:
    """A text as JSON, with and without escapes of what is not ASCII."""
    return st.sampled_from(
        [json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value).replace("/", "\\/")]
    )


def documents(columns: Any, most: int = 6) -> st.SearchStrategy[str]:
    """Objects for these fields: members are missing, more, or twice now and then."""
    names = [field.name for field in columns]
    known = {field.name: field for field in columns}

    def member(name: str) -> st.SearchStrategy[str]:
        value = values(known[name]) if name in known else ANYTHING
        return st.tuples(texts_of(name), BLANKS, value).map(lambda parts: f"{parts[0]}{parts[1]}:{parts[1]}{parts[2]}")

    any_name = st.sampled_from(names) if names else NAMES
    in_order = st.tuples(*(member(name) for name in names)).map(list)
    others = st.lists(st.one_of(any_name, NAMES).flatmap(member), max_size=most)
    return st.tuples(st.one_of(in_order, in_order, others), BLANKS).map(
        lambda parts: f"{parts[1]}{{{(',' + parts[1]).join(parts[0])}{parts[1]}}}"
    )


BLANKS = st.sampled_from(["", "", "", " ", "\n\t ", "\r"])
ANYTHING: st.SearchStrategy[str] = st.recursive(
    st.one_of(st.sampled_from(["null", "true", "false", "{}", "[]"]), NUMBERS, TEXTS.map(json.dumps)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.lists(st.tuples(TEXTS.map(json.dumps), inner), max_size=3).map(
            lambda pairs: f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"
        ),
    ),
    max_leaves=5,
)


def values(field: pa.Field) -> st.SearchStrategy[str]:
    """JSON values for a field; nearly all of the right type."""
    rarely_other = st.integers(0, 19).flatmap(lambda dice: ANYTHING if dice == 0 else fitting(field))
    return st.one_of(rarely_other, rarely_other, rarely_other, st.just("null"))


def fitting(field: pa.Field) -> st.SearchStrategy[str]:
    """JSON values of the type of a field."""
    kind = field.type
    if field.metadata:
        return ANYTHING
    if pa.types.is_struct(kind):
        return documents(kind)
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_field), max_size=4).map(lambda items: f"[{' , '.join(items)}]")
    if pa.types.is_map(kind):
        pairs = st.lists(st.tuples(TEXTS.flatmap(texts_of), values(kind.item_field)), max_size=3)
        return pairs.map(lambda items: f"{{{','.join(f'{key}:{value}' for key, value in items)}}}")
    if pa.types.is_decimal(kind):
        return DECIMALS
    return FITTING.get(kind, MOMENTS.map(json.dumps))


DECIMALS = st.one_of(NUMBERS, st.decimals(-100, 100, places=2).map(str), NUMBERS.map(json.dumps))
FITTING = {
    pa.bool_(): st.sampled_from(["true", "false"]),
    pa.int64(): st.one_of(INTEGERS.map(str), st.integers(-(2**63), 2**63 - 1).map(str)),
    pa.float64(): NUMBERS,
    pa.binary(): st.binary(max_size=20).map(lambda data: json.dumps(base64.b64encode(data).decode())),
    pa.string(): TEXTS.flatmap(texts_of),
}


@st.composite
def damaged(draw: st.DrawFn, document: bytes) -> bytes:
    """A document with a few bytes changed, removed or added."""
    data = bytearray(document)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        new = draw(
            st.sampled_from([b"", b"{", b"}", b'"', b"\\", b",", b"\xff", b"\x00", b"[", b"]", b"\xed\xa0\x80", b"1"])
        )
        data[place : place + draw(st.integers(0, 2))] = new
    return bytes(data)
