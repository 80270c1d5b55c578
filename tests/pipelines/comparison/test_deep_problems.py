"""The comparison of a deep verify, and which differences between the table and the brokers are problems."""

from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from kafka_io.cluster.opening import open_cluster
from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.comparison.broker_rows import BrokerRows
from pipelines.comparison.compare import ComparedOffsets, Comparison
from pipelines.comparison.deep_verify import PartitionComparison, _problems, deep_verify
from pipelines.increments.offset_sets import OffsetSet
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding, table
from tests.pipelines.fetch.test_unreadable import flipped
from tests.pipelines.load.test_choices import load
from tests.small_table import SmallTable

OF_07, MODERN = BrokerPartition(0, 0), BrokerPartition(None, 0)
FEW = ComparedOffsets(count=1, first=(3,))


@pytest.fixture
def fake() -> FakeCluster:
    return FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)})


@pytest.mark.parametrize(
    ("skipped", "parts"),
    [
        ([], [(0, 10)]),
        ([(2, 4)], [(0, 2), (4, 10)]),
        ([(0, 4)], [(4, 10)]),
        ([(6, 10)], [(0, 6)]),
        ([(0, 10)], []),
        ([(10, 20)], [(0, 10)]),
        ([(2, 8), (3, 5)], [(0, 2), (8, 10)]),
    ],
)
def test_skipped_offsets_are_left_out(skipped: list[tuple[int, int]], parts: list[tuple[int, int]]) -> None:
    hidden = OffsetSet(OffsetRange(MODERN, *edges) for edges in skipped)
    remaining = OffsetSet([OffsetRange(MODERN, 0, 10)]) - hidden
    assert [(offsets.start, offsets.stop) for offsets in remaining] == parts


@pytest.mark.parametrize(
    ("partition", "is_known", "has_hint"), [(MODERN, False, True), (MODERN, True, False), (OF_07, False, False)]
)
def test_an_unknown_isolation_may_explain_rows_that_are_missing(
    partition: BrokerPartition, is_known: bool, has_hint: bool
) -> None:
    compared = PartitionComparison(
        offsets=OffsetRange(partition, 0, 10),
        not_compared=0,
        comparison=Comparison(only_on_broker=FEW),
        is_known=is_known,
        aborted=0,
    )
    [problem] = _problems(compared)
    assert problem.startswith(f"partition {partition} lacks what its broker has: 1 row, at offsets 3")
    assert ("isolation" in problem) == has_hint


@pytest.mark.parametrize(
    ("partition", "aborted", "rows", "count"),
    [(MODERN, 0, FEW, 0), (MODERN, 2, FEW, 1), (OF_07, 0, FEW, 1), (OF_07, 0, ComparedOffsets(), 0)],
)
def test_compaction_explains_rows_that_only_the_table_has(
    partition: BrokerPartition, aborted: int, rows: ComparedOffsets, count: int
) -> None:
    """It explains none in 0.7, and none that may belong to aborted transactions."""
    compared = PartitionComparison(
        offsets=OffsetRange(partition, 0, 10),
        not_compared=0,
        comparison=Comparison(only_in_table=rows),
        is_known=True,
        aborted=aborted,
    )
    assert len(list(_problems(compared))) == count


def test_an_empty_table_needs_no_broker(small: SmallTable) -> None:
    cluster = Mock()
    assert deep_verify(small.table, cluster).problems == ()
    cluster.topic.assert_not_called()


def test_a_topic_that_the_cluster_does_not_have_is_a_problem(small: SmallTable) -> None:
    small.commit(small.write(0, 50))
    cluster = Mock()
    cluster.topic.return_value = None
    [problem] = deep_verify(small.table, cluster).problems
    assert problem.startswith("nothing was compared with the brokers: the cluster has no such topic")


def test_the_progress_counts_offsets_of_all_partitions(fake: FakeCluster, tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    with fake:
        load(fake, tmp_path)
        bootstrap = ",".join(broker.address for broker in fake.bootstrap)
        with open_cluster("main", bootstrap=bootstrap) as cluster:
            deep_verify(table(tmp_path), cluster, on_progress=lambda done, total: reported.append((done, total)))
    assert reported == [(20, 30), (20, 30), (30, 30), (30, 30)]


def test_a_partition_that_cannot_be_read_leaves_no_open_reader(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        flipped(fake.logs[0], 0)
        bootstrap = ",".join(broker.address for broker in fake.bootstrap)
        with open_cluster("main", bootstrap=bootstrap) as cluster, patch.object(BrokerRows, "drop") as drop:
            proof = deep_verify(table(tmp_path), cluster)
    assert [problem.partition(":")[0] for problem in proof.problems] == ["partition 0 was not compared with its broker"]
    drop.assert_called_once_with()
