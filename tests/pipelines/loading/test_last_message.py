"""A log without topic ids is recognised by the last message that was loaded from it."""

from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from kafka_io.wire.types import NULL_UUID
from resources.choices import Choices
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding, numbered, table, values
from tests.pipelines.loading.test_choices import load
from tests.simulation.brokers import ERAS, SimLog
from tests.simulation.test_found import SimTopic

P0 = BrokerPartition(None, 0)


@pytest.fixture
def fake() -> FakeCluster:
    """A cluster below 2.8 without ZooKeeper: nothing but the messages identifies its topic."""
    return FakeCluster(logs={0: holding(0, 20, epoch=-1)}, topic_id=NULL_UUID)


def test_a_log_that_goes_on_is_loaded(fake: FakeCluster, tmp_path: Path) -> None:  # fault P11
    with fake:
        assert load(fake, tmp_path).error is None
        fake.logs[0] = holding(0, 30, epoch=-1)
        assert load(fake, tmp_path).error is None
        assert values(tmp_path) == numbered(0, 30)
        entry = table(tmp_path).snapshot().entry
        assert entry is not None
        assert entry.last_messages[P0].offset == 29


def test_a_topic_without_an_id_that_is_created_again_is_noticed_until_a_choice(
    fake: FakeCluster, tmp_path: Path
) -> None:  # faults P08, P11
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 40, incarnation="second", epoch=-1)
        for _ in range(2):
            error = load(fake, tmp_path).error
            assert error is not None
            assert error.startswith("TopicRecreated: ")
            assert "keeps the table's 20 rows" in error
        assert load(fake, tmp_path, on_recreated="restart").error is None
        assert load(fake, tmp_path).error is None
        assert values(tmp_path) == [*numbered(0, 20), *numbered(0, 40, "second")]


def test_a_log_that_was_truncated_and_written_again_is_taken_back_to_where_it_diverged(
    fake: FakeCluster, tmp_path: Path
) -> None:  # faults P11, P12
    with fake:
        load(fake, tmp_path)
        kept, new = holding(0, 10, epoch=-1), holding(10, 30, incarnation="second", epoch=-1)
        new.entries, new.start = [*kept.entries, *new.entries], 0
        fake.logs[0] = new
        refused = load(fake, tmp_path).error
        assert refused is not None
        assert refused.startswith("LogTruncated: offsets [10, 20) are in the table")
        assert load(fake, tmp_path, on_truncated="rewind").error is None
        assert values(tmp_path) == [*numbered(0, 10), *numbered(10, 30, "second")]


def test_a_last_message_that_expired_contradicts_nothing(fake: FakeCluster, tmp_path: Path) -> None:  # fault P11
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(20, 40, epoch=-1)
        assert load(fake, tmp_path).error is None
        assert values(tmp_path) == numbered(0, 40)


def sim_07() -> tuple[SimTopic, SimLog]:
    """A topic of 0.7 with ten messages of 20 bytes, which are loaded."""
    sim = SimTopic(ERAS[0])
    log = sim.cluster.logs[sim.id]
    log.grow(range(10), lambda: 20)
    assert sim.load(Choices()).error is None
    return sim, log


def test_a_log_of_0_7_that_is_created_again_under_its_node_is_noticed_until_a_choice() -> None:  # faults P11, N11
    sim, _ = sim_07()
    sim.cluster.replace_logs()
    sim.cluster.logs[sim.id].grow(range(100, 130), lambda: 17)
    for _ in range(2):
        assert (sim.load(Choices()).error or "").startswith("TopicRecreated: ")
    assert sim.load(Choices(on_recreated="restart")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(10), *range(100, 130)]


@pytest.mark.parametrize("grown", [2, 20])
def test_a_cut_log_of_0_7_is_taken_back_to_where_it_diverged(grown: int) -> None:  # fault P12
    sim, log = sim_07()
    log.cut(100, 1)
    log.grow(range(50, 50 + grown), lambda: 23)
    assert sim.load(Choices(on_truncated="rewind")).error is None
    assert sorted(row.payload for row in sim.store.rows) == [*range(5), *range(50, 50 + grown)]
