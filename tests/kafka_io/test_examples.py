"""Every public class has an example in its docstring, and the examples are correct."""

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

PUBLIC = [getattr(kafka_io, name) for name in kafka_io.__all__]
CLASSES = [public for public in PUBLIC if inspect.isclass(public)]
ERRORS = [error for error in CLASSES if issubclass(error, kafka_io.KafkaIOError) and error is not kafka_io.KafkaIOError]
ELSEWHERE = ("consumer", "producer")
"""Rooms whose examples need more than a broker. The tests of these rooms run them."""
HERE = [
    public
    for public in PUBLIC
    if ">>> " in str(public.__doc__) and not public.__module__.removeprefix("kafka_io.").startswith(ELSEWHERE)
]


@pytest.mark.parametrize(
    "class_", [public for public in CLASSES if public not in ERRORS], ids=lambda public: public.__name__
)
def test_every_public_class_has_an_example(class_: type) -> None:
    assert ">>> " in str(class_.__doc__)


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """A broker for one example, with the topic that the examples use."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path)) as broker:
        with Client(broker.port) as client:
            assert client.create("clicks") == 0
        yield f"127.0.0.1:{broker.port}"


@pytest.mark.zookeeper
@pytest.mark.parametrize("object_", HERE, ids=lambda public: public.__name__)
def test_the_example_is_true(object_: Any, bootstrap: str, chroot: str) -> None:
    given = {name: getattr(kafka_io, name) for name in kafka_io.__all__}
    given |= {"bootstrap": bootstrap, "zookeeper": chroot}
    parsed = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(str(object_.__doc__)), given, object_.__name__, None, None
    )
    runner = doctest.DocTestRunner()
    runner.run(parsed)
    assert (runner.failures, runner.tries > 0) == (0, True)
