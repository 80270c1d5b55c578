"""A topic id names a topic, and not the content of its logs: brokers can be put back to an older copy."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from resources.settings.choices import Choices
from tests.fakes.cluster import EVERYTHING, FakeCluster
from tests.fakes.records import holding
from tests.pipelines.load.test_choices import load
from tests.simulation.sim_log import ERAS, Era, SimLog
from tests.simulation.test_found import SimTopic

REWIND = Choices(on_truncated="rewind")


def loaded(*, restarts: int = 2) -> tuple[SimTopic, SimLog]:
    """A topic with an id and two partitions. 100 records are loaded; the copy of the disk is from record 50."""
    sim = SimTopic(ERAS[3])
    sim.cluster.add_partition()
    log = sim.cluster.logs[sim.id]
    log.grow(range(50), lambda: 1)
    older = log.copy()
    for _ in range(restarts):
        log.elect()
    log.grow(range(50, 100), lambda: 1)
    assert sim.load(Choices()).error is None
    return sim, older


def payloads(sim: SimTopic) -> list[int]:
    return sorted(row.payload for row in sim.store.rows)


# faults A01, A02, B02: the epochs of both histories are lower, equal, or higher
@pytest.mark.parametrize("restarts", [1, 2, 3])
@pytest.mark.parametrize("others", [60, 51, 30])
def test_a_log_that_was_put_back_to_an_older_copy_stops_the_partition_until_a_choice(
    restarts: int, others: int
) -> None:
    sim, older = loaded()
    log = sim.cluster.logs[sim.id]
    log.put_back(older, tick=1, restarts=restarts)
    log.grow(range(200, 200 + others), lambda: 1)
    [other] = sim.cluster.logs.keys() - {sim.id}
    for count in (5, 10):  # an error at each load, and other partitions go on
        sim.cluster.logs[other].grow(range(295 + count, 300 + count), lambda: 1)
        assert re.match("LogTruncated: |CursorAheadOfLog: ", sim.load(Choices()).error or "")
        assert payloads(sim) == [*range(100), *range(300, 300 + count)]
    assert sim.load(REWIND).error is None
    assert payloads(sim) == [*range(50), *range(200, 200 + others), *range(300, 310)]
    log.grow(range(400, 410), lambda: 1)
    assert sim.load(Choices()).error is None
    assert set(range(400, 410)) <= set(payloads(sim))


def test_an_epoch_that_the_leader_does_not_know_shows_a_loss_if_the_last_message_cannot() -> None:  # fault A01
    """The log has lost the message before the cursor to compaction too, so nothing else contradicts the table."""
    sim, older = loaded()
    sim.cluster.compacts = True
    log = sim.cluster.logs[sim.id]
    log.put_back(older, tick=1, restarts=3)
    log.grow(range(200, 260), lambda: 1)
    log.compact([99])
    assert (sim.load(Choices()).error or "").startswith("LogTruncated: offsets [50, 100)")
    assert sim.load(REWIND).error is None
    assert payloads(sim) == [*range(50), *range(200, 249), *range(250, 260)]


def test_offsets_whose_records_were_compacted_are_loaded_again_from_an_older_copy() -> None:  # fault P28
    """The table has no row at them that could be compared, and no message contradicts it."""
    sim = SimTopic(ERAS[3])
    sim.cluster.compacts = True
    log = sim.cluster.logs[sim.id]
    log.grow(range(50), lambda: 1)
    older = log.copy()
    for _ in range(2):
        log.elect()
    log.grow(range(50, 100), lambda: 1)
    log.compact(range(50, 100))
    assert sim.load(Choices()).error is None
    log.put_back(older, tick=1)
    log.compact([49])
    log.grow(range(200, 260), lambda: 1)
    assert "the table was loaded from epoch 2" in (sim.load(Choices()).error or "")
    assert sim.load(REWIND).error is None
    assert payloads(sim) == [*range(50), *range(200, 260)]


def test_an_older_epoch_is_not_accepted_although_the_log_has_all_that_was_loaded() -> None:  # fault B02
    sim = SimTopic(ERAS[3])
    log = sim.cluster.logs[sim.id]
    log.grow(range(50), lambda: 1)
    older = log.copy()
    log.elect()
    log.elect()
    assert sim.load(Choices()).error is None
    log.put_back(older, tick=1)
    assert sim.load(Choices()).error is None  # without news nothing is accepted
    log.grow(range(50, 60), lambda: 1)
    error = sim.load(Choices()).error or ""
    assert "has leader epoch 1, but the table was loaded from epoch 2" in error
    assert sim.load(REWIND).error is None
    assert sim.load(Choices()).error is None
    assert payloads(sim) == [*range(60)]


def test_the_last_message_is_learned_by_the_next_commit_of_a_table_of_an_earlier_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fault A02
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.commit.commit.LoadChange._new_last_messages", lambda _: {})
        sim, _ = loaded()
    log = sim.cluster.logs[sim.id]
    log.grow(range(100, 110), lambda: 1)
    older = log.copy()
    assert sim.load(Choices()).error is None
    older.cut(105, 1)
    log.put_back(older, tick=1, restarts=0)
    log.starts = [*older.starts[:-1]]
    log.grow(range(200, 230), lambda: 1)
    assert (sim.load(Choices()).error or "").startswith("LogTruncated: offsets [105, 110)")


@pytest.mark.parametrize("era", ERAS[1:], ids=lambda era: era.name)
@pytest.mark.parametrize("elections", [0, 1])
def test_what_a_log_lost_while_its_cluster_was_rebuilt_waits_for_a_choice(era: Era, elections: int) -> None:
    """The new leader does not know an epoch in which nothing was written. Then messages show what is lost."""
    sim = SimTopic(era)  # faults B04, N17
    sim.cluster.add_partition()
    log, other = sim.cluster.logs.values()
    log.grow(range(100), lambda: 1)
    for _ in range(elections):
        log.elect()
    assert sim.load(Choices()).error is None
    sim.cluster.cluster_number += 1
    sim.cluster.answers.cluster_id = ""
    log.cut(50, tick=1)
    log.grow(range(200, 260), lambda: 1)
    for choices, count in ((Choices(on_cluster_changed="adopt"), 5), (Choices(), 10)):
        other.grow(range(295 + count, 300 + count), lambda: 1)
        assert (sim.load(choices).error or "").startswith("LogTruncated: offsets [50, 100)")
        assert payloads(sim) == [*range(100), *range(300, 300 + count)]
    assert sim.load(REWIND).error is None
    assert payloads(sim) == [*range(50), *range(200, 260), *range(300, 310)]


def test_a_lower_epoch_in_a_rebuilt_cluster_waits_for_a_choice() -> None:  # faults B02, N17
    sim, older = loaded()
    log = sim.cluster.logs[sim.id]
    sim.cluster.cluster_number += 1
    sim.cluster.answers.cluster_id = ""
    log.put_back(older, tick=1)
    log.grow(range(50, 110), lambda: 1)
    for choices in (Choices(on_cluster_changed="adopt"), Choices()):
        assert "the table was loaded from epoch 2" in (sim.load(choices).error or "")
    assert sim.load(REWIND).error is None
    assert payloads(sim) == [*range(110)]


def test_all_records_of_a_log_that_lost_its_disk_are_taken_back_by_choice() -> None:  # fault A01
    """The topic has the same id, so it was not created again, although the log has nothing of the table."""
    sim, _ = loaded()
    log = sim.cluster.logs[sim.id]
    log.put_back(SimLog(era=ERAS[3]), tick=1)
    log.grow(range(200, 320), lambda: 1)
    assert "the table was loaded from epoch 2" in (sim.load(Choices()).error or "")
    assert sim.load(REWIND).error is None
    assert payloads(sim) == [*range(200, 320)]


def test_a_truncation_is_not_believed_if_the_log_has_what_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version committed the epoch of the plan, although records came from the next leader."""
    sim, _ = loaded()  # fault E09
    log = sim.cluster.logs[sim.id]
    log.starts = [(0, 0), (2, 50), (3, 80)]
    for grown in (0, 10):
        log.grow(range(100, 100 + grown), lambda: 1)
        assert sim.load(Choices()).error is None
    assert payloads(sim) == [*range(110)]


def test_a_truncation_is_believed_if_the_log_has_another_message_at_its_end() -> None:  # faults B04, E09
    """Rows in the middle can be those of the former leader, and the last ones those of the next leader."""
    sim, _ = loaded()
    log = sim.cluster.logs[sim.id]
    log.starts = [(0, 0), (2, 50), (3, 80)]
    log.records |= {80: 500, 81: 501}
    log.grow(range(100, 110), lambda: 1)
    assert (sim.load(Choices()).error or "").startswith("LogTruncated: offsets [80, 100)")


def test_a_load_of_a_topic_with_an_id_reads_the_last_messages_with_one_request(tmp_path: Path) -> None:  # fault A02
    offered = {**EVERYTHING, OffsetForLeaderEpochRequest.API.key: OffsetForLeaderEpochRequest.API.versions}
    fake = FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)}, topic_id=UUID(int=7), offered=offered)
    with fake:
        for end in (30, 40):
            assert load(fake, tmp_path).error is None
            fake.logs = {0: holding(0, end), 1: holding(0, end)}
        before = len(fake.heard(FetchRequest.API.key))
        assert load(fake, tmp_path).error is None
        fetches = fake.heard(FetchRequest.API.key)[before:]
        assert len(fetches) == 2  # one for the last messages, one for the records
        assert load(fake, tmp_path).rows == 0
        assert len(fake.heard(FetchRequest.API.key)) == before + 2  # nothing is compared without news
