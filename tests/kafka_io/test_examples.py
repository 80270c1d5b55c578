"""The examples in the docstrings of what the door shows: every class has one, and it is true."""

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafka_io
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.talk import Client

DOOR = [getattr(kafka_io, name) for name in kafka_io.__all__]
CLASSES = [one for one in DOOR if inspect.isclass(one)]
ERRORS = [one for one in CLASSES if issubclass(one, kafka_io.KafkaIOError) and one is not kafka_io.KafkaIOError]
ELSEWHERE = ("consumer", "producer")
"""Rooms whose examples need more of a world, and are run by tests of their own."""
HERE = [
    one
    for one in DOOR
    if ">>> " in str(one.__doc__) and not one.__module__.removeprefix("kafka_io.").startswith(ELSEWHERE)
]


@pytest.mark.parametrize("one", [one for one in CLASSES if one not in ERRORS], ids=lambda one: one.__name__)
def test_every_class_of_the_door_shows_how_it_is_used(one: type) -> None:
    assert ">>> " in str(one.__doc__)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker of each example's own, with the topic that examples speak of: none leans on what another did."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path)) as broker:
        with Client(broker.port) as client:
            assert client.create("clicks") == 0
        yield f"127.0.0.1:{broker.port}"


@pytest.mark.zookeeper
@pytest.mark.parametrize("one", HERE, ids=lambda one: one.__name__)
def test_the_example_is_true(one: Any, bootstrap: str, chroot: str) -> None:
    given = {name: getattr(kafka_io, name) for name in kafka_io.__all__}
    given |= {"bootstrap": bootstrap, "zookeeper": chroot}
    parsed = doctest.DocTestParser().get_doctest(inspect.cleandoc(str(one.__doc__)), given, one.__name__, None, None)
    runner = doctest.DocTestRunner()
    runner.run(parsed)
    assert (runner.failures, runner.tries > 0) == (0, True)
