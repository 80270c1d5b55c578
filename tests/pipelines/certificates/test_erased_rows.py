"""The offsets of a request are those of its commits, and rows of a former topic of the same name are not meant."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from kafka_io.model import BrokerPartition
from pipelines.certificates.erased_rows import ErasedByCommit, ErasedOffsets
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.ledger.ledger import TopicIdentity
from pipelines.verify.row_counts import IDENTIFYING

ONE = BrokerPartition(None, 1)
TOPIC = TopicIdentity(cluster="main", name="clicks", incarnation="7")
FORMER = replace(TOPIC, incarnation="6")


def offsets(*numbers: int) -> ExactOffsets:
    return ExactOffsets.of(np.array(numbers, np.int64))


def rows(*places: tuple[int | None, int, int, int, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(IDENTIFYING, place, strict=True)) for place in places])


def test_only_rows_of_the_request_count() -> None:
    commit = ErasedByCommit(topic=TOPIC, before={(TOPIC, ONE): offsets(1)}, after={(TOPIC, ONE): offsets(1, 5, 6)})
    erased = ErasedOffsets(commits=[commit], loaded_us={TOPIC: {9}, replace(TOPIC, incarnation="8"): {7}})
    read = rows((None, 1, 1, 0, 9), (None, 1, 5, 0, 9), (None, 2, 5, 0, 9), (None, 1, 6, 0, 7), (None, 1, 7, 0, 9))
    assert erased.count_in(read) == 1
    assert [(part.partition, part.rows) for part in commit.counts()] == [(1, 2)]
    assert erased.last_offsets() == {ONE: 6}


def test_each_topic_of_the_name_has_its_own_rows() -> None:  # fault Y16
    after = {(TOPIC, ONE): offsets(5), (FORMER, ONE): offsets(6, 8)}
    commit = ErasedByCommit(topic=TOPIC, before={}, after=after)
    erased = ErasedOffsets(commits=[commit], loaded_us={TOPIC: {9}, FORMER: {7}})
    assert erased.count_in(rows((None, 1, 5, 0, 7), (None, 1, 6, 0, 9))) == 0
    assert erased.count_in(rows((None, 1, 5, 0, 9), (None, 1, 6, 0, 7), (None, 1, 8, 0, 7))) == 3
    assert [(part.partition, part.rows) for part in commit.counts()] == [(1, 3)]
    assert erased.last_offsets() == {ONE: 5}
    assert commit.has_erased(FORMER, ONE, 8)
    assert not commit.has_erased(TOPIC, ONE, 8)


def test_in_0_7_a_row_is_an_offset_and_its_place_in_the_message() -> None:
    broker = BrokerPartition(2, 0)
    own = ExactOffsets.of(np.array([10, 10], np.int64), np.array([0, 2], np.int64))
    erased = ErasedOffsets(commits=[ErasedByCommit(topic=TOPIC, before={}, after={(TOPIC, broker): own})])
    assert erased.count_in(rows((2, 0, 10, 0, 1), (2, 0, 10, 1, 1), (2, 0, 10, 2, 1), (3, 0, 10, 0, 1))) == 2
    assert erased.last_offsets() == {broker: 10}


def test_a_partition_without_new_rows_has_no_last_offset() -> None:
    commit = ErasedByCommit(topic=TOPIC, before={(TOPIC, ONE): offsets(1)}, after={(TOPIC, ONE): offsets(1)})
    assert ErasedOffsets(commits=[commit]).last_offsets() == {}
    assert commit.counts() == []


def test_the_offset_of_a_last_message_is_one_that_the_request_erased() -> None:
    commit = ErasedByCommit(topic=TOPIC, before={(TOPIC, ONE): offsets(1)}, after={(TOPIC, ONE): offsets(1, 5, 6)})
    assert [offset for offset in range(9) if commit.has_erased(TOPIC, ONE, offset)] == [5, 6]
    assert not commit.has_erased(TOPIC, BrokerPartition(None, 2), 5)
