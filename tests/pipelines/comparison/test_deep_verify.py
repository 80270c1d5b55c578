"""Deep verify reads again what the brokers hold, and names the offsets where the table differs."""

from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pytest

from kafka_io.cluster.opening import open_cluster
from kafka_io.model import BrokerPartition
from pipelines.comparison import table_rows
from pipelines.comparison.deep_verify import deep_verify
from pipelines.comparison.table_rows import LiveRows
from pipelines.fetch import fetch
from tests.fakes.cluster import FakeCluster
from tests.fakes.decoding import lose_rows
from tests.fakes.records import holding, table
from tests.pipelines.conftest import Modern
from tests.pipelines.load.test_choices import load
from tests.pipelines.loaded import Loaded
from tests.pipelines.rewrites.test_replay import transact

pytestmark = pytest.mark.slow  # each test fills a table and changes it

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
    lose_rows(monkeypatch)
    [problem] = modern.topic.deep().problems
    assert problem.startswith("partition 0 was not compared with its broker: 86 records were decoded")
    assert "the headers of its batches count 100 records" in problem


def set_isolation(modern: Modern, isolation: str) -> None:
    modern.configure()
    settings = modern.topic.settings
    settings.write_text(settings.read_text().replace("bootstrap", f'isolation = "{isolation}"\nbootstrap', 1))


# fault U15
@pytest.mark.parametrize(
    ("loaded", "now", "rows"), [("committed", "uncommitted", 30), ("uncommitted", "committed", 60)]
)
def test_rows_are_compared_with_the_isolation_of_their_load(loaded: str, now: str, rows: int, modern: Modern) -> None:
    transact(modern)
    set_isolation(modern, loaded)
    modern.topic.load()
    set_isolation(modern, now)
    proof = modern.topic.deep()
    assert proof.proven, proof.problems
    assert proof.compared[0].comparison.equal == rows


# fault U15
@pytest.mark.parametrize(
    ("loaded", "now", "problem"),
    [
        ("committed", "uncommitted", "lacks what its broker has: 30 rows"),
        ("uncommitted", "committed", "has what its broker does not have: 30 rows"),
    ],
)
def test_a_difference_that_another_isolation_may_explain_names_the_setting(
    loaded: str, now: str, problem: str, modern: Modern, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions did not record with which isolation they loaded."""
    transact(modern)
    set_isolation(modern, loaded)
    monkeypatch.setattr(fetch, "_isolation", lambda _: "")
    modern.topic.load()
    set_isolation(modern, now)
    [reported] = modern.topic.deep().problems
    assert reported.startswith(f"partition 0 {problem}")
    assert "`isolation`" in reported


# fault U19
def test_one_reader_and_the_own_files_of_a_partition_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    intact = table_rows.LiveRows

    def live_rows(files: pads.FileSystemDataset, *args: Any, **more: Any) -> LiveRows:
        opened.append(len(list(files.get_fragments())))
        return intact(files, *args, **more)

    monkeypatch.setattr(table_rows, "LiveRows", live_rows)
    with FakeCluster(logs={number: holding(0, 5) for number in range(12)}) as fake:
        assert load(fake, tmp_path).rows == 60
        before = sum(broker.connections for broker in fake.brokers)
        bootstrap = ",".join(broker.address for broker in fake.bootstrap)
        with open_cluster("main", bootstrap=bootstrap) as cluster:
            proof = deep_verify(table(tmp_path), cluster)
        assert proof.proven, proof.problems
        assert [partition.comparison.equal for partition in proof.compared] == [5] * 12
        assert opened == [1] * 12
        assert sum(broker.connections for broker in fake.brokers) - before <= 6


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
