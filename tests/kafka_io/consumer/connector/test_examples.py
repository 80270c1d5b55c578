"""The examples in the docstrings of consumers without a coordinator are true on an embedded broker of 0.7."""

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import kafka_io
from kafka_io.records.build import message_set
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from tests.kafka_io.testing.v07.talk import Client

pytestmark = pytest.mark.zookeeper

ROOMS = ("kafka_io.consumer.simple", "kafka_io.consumer.fetched", "kafka_io.consumer.connector")
MODULES = ("simple", "fetched", "connector.connector", "connector.stream")


def examples() -> dict[str, doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=True)
    tests = (test for name in MODULES for test in finder.find(import_module(f"kafka_io.consumer.{name}")))
    return {test.name.rpartition(".")[2]: test for test in tests if test.examples}


EXAMPLES = examples()


@pytest.fixture
def broker(chroot: str, tmp_path: Path) -> Iterator[BrokerServer07]:
    """A broker that has two messages in `clicks`."""
    config = BrokerConfig07(broker_id=0, data_dir=tmp_path, partitions=1)
    with BrokerServer07(config, zookeeper=chroot) as server, Client(server.port) as client:
        client.produce("clicks", message_set([b"one", b"two"]))
        yield server


def test_every_public_class_has_an_example() -> None:
    public = {name: getattr(kafka_io, name) for name in kafka_io.__all__}
    ours = {name for name, value in public.items() if getattr(value, "__module__", "").startswith(ROOMS)}
    assert ours == EXAMPLES.keys()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_is_true(broker: BrokerServer07, chroot: str, name: str) -> None:
    names = {public: getattr(kafka_io, public) for public in kafka_io.__all__}
    example = EXAMPLES[name]
    example.globs = {**names, "zookeeper": chroot, "address": f"127.0.0.1:{broker.port}"}
    assert doctest.DocTestRunner().run(example).failed == 0
