"""The examples in the docstrings are true on an embedded broker."""

import doctest
from importlib import import_module
from typing import Any

import pytest

import kafka_io
from tests.kafka_io.consumer.group.conftest import Ground
from tests.publishing import publish

MODULES = ("admin", "assignors", "consumer", "fetcher", "offset_reset", "settings")
TOLD = {"GroupDescription", "GroupListing", "GroupMember"}  # these examples look at a member that is there


def examples() -> dict[str, doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=True)
    found: dict[str, doctest.DocTest] = {}
    for name in MODULES:
        module = import_module(f"kafka_io.consumer.group.{name}")
        found |= {one.name.rpartition(".")[2]: one for one in finder.find(module) if one.examples}
    return found


EXAMPLES = examples()


def test_every_public_class_has_an_example() -> None:
    ours = {
        name for name in kafka_io.__all__ if getattr(kafka_io, name).__module__.startswith("kafka_io.consumer.group.")
    }
    classes = {name for name in ours if isinstance(getattr(kafka_io, name), type)}
    assert classes <= EXAMPLES.keys()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_is_true(bare: Ground, name: str) -> None:
    bare.create("clicks", 1)
    cluster = bare.cluster()
    publish("clicks", [b"one", b"two"], bootstrap=bare.address)
    if name in TOLD:
        member = bare.member()
        assert member.poll(60)
        member.commit()
    names: dict[str, Any] = {one: getattr(kafka_io, one) for one in kafka_io.__all__}
    example = EXAMPLES[name]
    example.globs = {**names, "cluster": cluster}
    assert doctest.DocTestRunner().run(example).failed == 0
