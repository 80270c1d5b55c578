"""Deep verify reads again what the brokers hold, and names the offsets where the table differs."""

import pyarrow as pa
import pytest

from kafka_io.model import BrokerPartition
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.records.decoder import Decoder
from tests.pipelines.maintenance.conftest import Modern
from tests.pipelines.maintenance.loaded import Loaded

A = BrokerPartition(0, 0)
ONE = BrokerPartition(None, 0)


@pytest.mark.zookeeper
def test_a_deep_verify_finds_the_same_rows_on_the_brokers(old: Loaded) -> None:
    proof = old.deep()
    assert proof.proven, proof.problems
    assert sum(partition.comparison.equal for partition in proof.compared) == 600
    assert [partition.not_compared for partition in proof.compared] == [0, 0, 0, 0]


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
    result = proof.compared[0].comparison
    assert result.only_on_broker.first == (offset,)
    assert (
        sum(partition.comparison.equal + partition.comparison.only_on_broker.count for partition in proof.compared)
        == 600
    )
    assert any("partition 0-0 lacks what its broker has" in problem for problem in proof.problems)


def test_a_modern_topic_is_compared_with_its_times_and_headers(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    proof = modern.topic.deep()
    assert proof.proven, proof.problems
    assert proof.compared[0].comparison.equal == 100
    modern.topic.spoil(ONE, 7, 8, 50)
    assert modern.topic.deep().compared[0].comparison.differing.first == (7, 8, 50)


# fault P03
def test_a_decoder_that_loses_rows_proves_nothing(modern: Modern, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the table's records without every seventh row, and calls these rows compacted."""
    modern.publish(100)
    modern.topic.load()
    intact = Decoder._take

    def losing(decoder: Decoder, next_offset: int) -> DecodedBatch:
        decoded = intact(decoder, next_offset)
        kept = [row for row in range(decoded.batch.num_rows) if row % 7 != 6]
        gaps = {"compacted": decoded.batch.num_rows - len(kept)}
        return DecodedBatch(decoded.batch.take(pa.array(kept)), decoded.next_offset, gaps)

    monkeypatch.setattr(Decoder, "_take", losing)
    [problem] = modern.topic.deep().problems
    assert problem.startswith("partition 0 was not compared with its broker: 86 records were decoded")
    assert "the headers of its batches count 100 records" in problem


def test_expired_offsets_are_not_compared(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    modern.expire()
    proof = modern.topic.deep()
    [partition] = proof.compared
    assert proof.proven, proof.problems
    assert (partition.not_compared, partition.comparison.equal) == (
        partition.offsets.start,
        100 - partition.offsets.start,
    )
    assert partition.offsets.start > 0
