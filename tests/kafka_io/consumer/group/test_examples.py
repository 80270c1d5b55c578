"""The examples in the docstrings are true on an embedded broker."""

import doctest
from importlib import import_module
from typing import Any

import pytest

import kafka_io
from tests.kafka_io.consumer.group.conftest import GroupBroker
from tests.publishing import publish

MODULES = ("admin", "assignors", "consumer", "fetcher", "offset_reset", "settings")
NEED_A_MEMBER = {"GroupDescription", "GroupListing", "GroupMember"}  # these examples describe a live member


def examples() -> dict[str, doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=True)
    examples: dict[str, doctest.DocTest] = {}
    for name in MODULES:
        module = import_module(f"kafka_io.consumer.group.{name}")
        examples |= {test.name.rpartition(".")[2]: test for test in finder.find(module) if test.examples}
    return examples


EXAMPLES = examples()


def test_every_public_class_has_an_example() -> None:
    ours = {
        name for name in kafka_io.__all__ if getattr(kafka_io, name).__module__.startswith("kafka_io.consumer.group.")
    }
    classes = {name for name in ours if isinstance(getattr(kafka_io, name), type)}
    assert classes <= EXAMPLES.keys()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_is_true(empty_broker: GroupBroker, name: str) -> None:
    empty_broker.create("clicks", 1)
    cluster = empty_broker.cluster()
    publish("clicks", [b"one", b"two"], bootstrap=empty_broker.address)
    if name in NEED_A_MEMBER:
        member = empty_broker.member()
        assert member.poll(60)
        member.commit()
    names: dict[str, Any] = {public: getattr(kafka_io, public) for public in kafka_io.__all__}
    example = EXAMPLES[name]
    example.globs = {**names, "cluster": cluster}
    assert doctest.DocTestRunner().run(example).failed == 0
