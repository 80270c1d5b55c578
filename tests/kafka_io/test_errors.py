"""Errors have their location as data; it survives pickling, and its text is safe in logs."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io import errors
from kafka_io.errors import BrokerError, ConnectionLost, Corrupt, KafkaIOError, LocatedError, Where, error_context

PLACES = st.builds(
    Where,
    cluster=st.none() | st.text(),
    broker=st.none() | st.text(),
    topic=st.none() | st.text(),
    partition=st.none() | st.text() | st.integers(),
    offset=st.none() | st.integers(),
)


def family(base: type[LocatedError]) -> list[type[LocatedError]]:
    """`base` and all its subclasses in kafka_io.errors."""
    return [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    ]


PLACED = family(LocatedError)
BROKER = [BrokerError, *family(BrokerError)]


@pytest.mark.parametrize("kind", PLACED)
@settings(max_examples=20)  # of each kind
@given(reason=st.text(), where=PLACES)
def test_every_error_survives_pickling(kind: type[LocatedError], reason: str, where: Where) -> None:
    error = kind(reason, where)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.reason, copy.where, str(copy)) == (kind, reason, where, str(error))


@pytest.mark.parametrize("kind", BROKER)
@given(code=st.integers(-(2**15), 2**15 - 1), where=PLACES, outer=PLACES)
def test_a_broker_error_keeps_its_code_when_it_is_copied_or_pickled(
    kind: type[BrokerError], code: int, where: Where, outer: Where
) -> None:
    error = kind("no", where, code)
    for copy in (
        pickle.loads(pickle.dumps(error)),
        error.with_context(outer),
        pickle.loads(pickle.dumps(error.with_context(outer))),
    ):
        assert (type(copy), copy.code, copy.reason) == (kind, code, "no")


@given(inner=PLACES, outer=PLACES)
def test_a_location_keeps_its_known_parts_and_takes_the_others_from_the_outer_one(inner: Where, outer: Where) -> None:
    assert inner.within(outer).as_dict() == {**outer.as_dict(), **inner.as_dict()}


@given(where=PLACES, offset=st.integers())
def test_a_location_at_an_offset_differs_only_in_the_offset(where: Where, offset: int) -> None:
    assert where.at_offset(offset).as_dict() == {**where.as_dict(), "offset": offset}


@given(where=PLACES)
def test_a_location_cannot_break_a_line_or_colour_a_terminal(where: Where) -> None:  # fault X05
    text = str(where)
    assert text.isprintable()
    assert len(text.splitlines()) <= 1


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("clicks", "topic=clicks"),
        ("a\nFATAL all is lost", r"topic='a\nFATAL all is lost'"),
        ("\x1b[31mred", r"topic='\x1b[31mred'"),
        ("a offset=7", "topic='a offset=7'"),
        ("", "topic=''"),
        ("caf\xe9", "topic=caf\xe9"),
    ],
)
def test_a_topic_name_with_unusual_characters_is_quoted(topic: str, text: str) -> None:  # fault X05
    assert str(Where(topic=topic)) == text


def test_the_text_of_an_error_is_a_sentence_and_a_location() -> None:
    where = Where(cluster="main", broker="0@127.0.0.1:9092", topic="clicks", partition="0-1", offset=41)
    place = "cluster=main broker=0@127.0.0.1:9092 topic=clicks partition=0-1 offset=41"
    assert str(Corrupt("wrong CRC", where)) == f"wrong CRC [{place}]"
    assert str(Corrupt("wrong CRC")) == "wrong CRC"


def test_offset_zero_and_partition_zero_are_known_parts() -> None:
    assert str(Where(partition=0, offset=0)) == "partition=0 offset=0"


def test_each_context_adds_unknown_parts_and_keeps_the_cause() -> None:
    cause = OSError("reset")

    def fail() -> None:
        with error_context(Where(cluster="main", topic="outer")), error_context(Where(topic="clicks")):
            raise ConnectionLost("broke", Where(offset=3)) from cause

    with pytest.raises(ConnectionLost) as raised:
        fail()
    assert raised.value.where == Where(cluster="main", topic="clicks", offset=3)
    assert raised.value.__cause__ is cause


def test_a_context_does_not_change_other_exceptions() -> None:
    error = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug") as raised, error_context(Where(topic="clicks")):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("kind", "retriable"),
    [
        *((kind, True) for kind in family(errors.NetworkError)),
        *((kind, kind is errors.PastEnd) for kind in family(errors.WireError)),
        (errors.LogShort, True),
        (errors.OffsetOutOfRange, False),
        (errors.RegistryUnavailable, True),
        (errors.NodeMalformed, False),
    ],
)
def test_the_class_says_whether_another_attempt_can_help(kind: type[Any], retriable: bool) -> None:  # fault W14
    assert issubclass(kind, KafkaIOError)
    assert kind.retriable is retriable
