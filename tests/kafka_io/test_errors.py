"""Errors carry their place as data: over processes, from layer to layer, and safely into logs."""

import pickle
from typing import Any

import pytest
from hypothesis import given
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
    """`base` and all that are made of it in kafka_io.errors."""
    return [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, base) and kind is not base
    ]


PLACED = family(LocatedError)
BROKER = [BrokerError, *family(BrokerError)]


@pytest.mark.parametrize("kind", PLACED)
@given(reason=st.text(), where=PLACES)
def test_every_error_survives_pickling_with_its_parts(kind: type[LocatedError], reason: str, where: Where) -> None:
    error = kind(reason, where)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.reason, copy.where, str(copy)) == (kind, reason, where, str(error))


@pytest.mark.parametrize("kind", BROKER)
@given(code=st.integers(-(2**15), 2**15 - 1), where=PLACES, outer=PLACES)
def test_a_brokers_error_keeps_its_code_however_it_travels(
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
def test_a_place_within_another_keeps_all_it_knew_and_learns_the_rest(inner: Where, outer: Where) -> None:
    assert inner.within(outer).as_dict() == {**outer.as_dict(), **inner.as_dict()}


@given(where=PLACES, offset=st.integers())
def test_a_place_at_an_offset_differs_in_nothing_else(where: Where, offset: int) -> None:
    assert where.at_offset(offset).as_dict() == {**where.as_dict(), "offset": offset}


@given(where=PLACES)
def test_no_place_can_break_a_line_or_colour_a_terminal(where: Where) -> None:  # fault X05
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
def test_topic_names_are_told_so_that_they_cannot_pass_for_something_else(topic: str, text: str) -> None:  # fault X05
    assert str(Where(topic=topic)) == text


def test_an_error_reads_as_a_sentence_and_a_place() -> None:
    where = Where(cluster="main", broker="0@127.0.0.1:9092", topic="clicks", partition="0-1", offset=41)
    place = "cluster=main broker=0@127.0.0.1:9092 topic=clicks partition=0-1 offset=41"
    assert str(Corrupt("wrong CRC", where)) == f"wrong CRC [{place}]"
    assert str(Corrupt("wrong CRC")) == "wrong CRC"


def test_offset_zero_and_partition_zero_are_known_parts() -> None:
    assert str(Where(partition=0, offset=0)) == "partition=0 offset=0"


def test_each_layer_adds_what_it_knows_and_the_cause_stays() -> None:
    cause = OSError("reset")

    def fail() -> None:
        with error_context(Where(cluster="main", topic="outer")), error_context(Where(topic="clicks")):
            raise ConnectionLost("broke", Where(offset=3)) from cause

    with pytest.raises(ConnectionLost) as caught:
        fail()
    assert caught.value.where == Where(cluster="main", topic="clicks", offset=3)
    assert caught.value.__cause__ is cause


def test_other_exceptions_pass_a_layer_untouched() -> None:
    error = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug") as caught, error_context(Where(topic="clicks")):
        raise error
    assert caught.value is error


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
