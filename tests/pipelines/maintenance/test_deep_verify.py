"""Deep verify reads again what the brokers hold, and names the offsets where the table differs."""

import pytest

from kafka_io.model import BrokerPartition
from tests.pipelines.maintenance.conftest import Modern
from tests.pipelines.maintenance.loaded import Loaded

A = BrokerPartition(0, 0)
ONE = BrokerPartition(None, 0)


@pytest.mark.zookeeper
def test_what_was_loaded_is_what_brokers_have(old: Loaded) -> None:
    proof = old.deep()
    assert proof.proven, proof.problems
    assert sum(one.comparison.equal for one in proof.compared) == 600
    assert [one.not_compared for one in proof.compared] == [0, 0, 0, 0]


@pytest.mark.zookeeper
def test_a_value_that_was_changed_is_named(old: Loaded) -> None:
    offset = old.offsets(A)[3]
    old.spoil(A, offset)
    assert old.problems() == ()
    proof = old.deep()
    [problem] = proof.problems
    assert problem.startswith("partition 0-0 differs from its broker: ")
    assert problem.endswith(f"offsets {offset}")


@pytest.mark.zookeeper
def test_rows_that_were_lost_are_named(old: Loaded) -> None:
    offset = old.offsets(A)[3]
    old.lose(A, offset)
    proof = old.deep()
    found = proof.compared[0].comparison
    assert found.only_on_broker.first == (offset,)
    assert sum(one.comparison.equal + one.comparison.only_on_broker.count for one in proof.compared) == 600
    assert any("partition 0-0 lacks what its broker has" in problem for problem in proof.problems)


def test_a_modern_topic_is_compared_with_its_times_and_headers(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    proof = modern.topic.deep()
    assert proof.proven, proof.problems
    assert proof.compared[0].comparison.equal == 100
    modern.topic.spoil(ONE, 7, 8, 50)
    assert modern.topic.deep().compared[0].comparison.differing.first == (7, 8, 50)


def test_what_retention_took_is_not_compared(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    modern.expire()
    proof = modern.topic.deep()
    [one] = proof.compared
    assert proof.proven, proof.problems
    assert (one.not_compared, one.comparison.equal) == (one.offsets.start, 100 - one.offsets.start)
    assert one.offsets.start > 0
