"""A replay, a deep verify, a redecode and a cut leave rows out that were taken out of the table before."""

from pathlib import Path

import pytest

from kafka_io.model import BrokerPartition
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.committed_range import ExactCause
from pipelines.ledger.incarnations import incarnations
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.table.table_store import TableSnapshot
from resources.errors import CommitRefused
from tests.pipelines.conftest import Modern
from tests.pipelines.loaded import Loaded
from tests.pipelines.rewrites.test_replay_races import Overtaken
from tests.pipelines.taken_out import rows_of, take_out

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ONE, OF_07 = BrokerPartition(None, 0), BrokerPartition(0, 0)
GONE = (3, 24, 25, 60)


@pytest.fixture
def topic(modern: Modern) -> Loaded:
    """A topic of 100 records in slices of 25. Four rows were taken out."""
    modern.publish(100)
    modern.topic.load()
    take_out(modern.topic.table, ONE, rows_of(*GONE))
    return modern.topic


def offsets_left(topic: Loaded) -> list[int]:
    return sorted(set(range(100)) - set(topic.offsets(ONE)))


def newest(topic: Loaded) -> TableSnapshot:
    snapshot = topic.table.existing()
    assert snapshot is not None
    return snapshot


def test_a_replay_does_not_bring_rows_back(topic: Loaded) -> None:  # fault P16
    result = topic.replay("earliest", "latest")
    assert (result.error, result.changed) == (None, False)
    topic.spoil(ONE, 50)
    take_out(topic.table, ONE, rows_of(61), cause=ExactCause.RETIRED)
    result = topic.replay("10", "70", "0")
    assert (result.error, result.changed, offsets_left(topic)) == (None, True, [*GONE, 61])
    assert topic.deep().problems == ()
    [part] = result.partitions
    assert part.gaps == {"erased": 3, "retired": 1}
    assert topic.replay("earliest", "latest").changed is False


def test_several_references_and_large_sets_are_left_out_too(modern: Modern) -> None:
    modern.publish(1_000)
    modern.topic.load()
    odd, few = rows_of(*range(1, 1_000, 3)), rows_of(30, 900)
    take_out(modern.topic.table, ONE, odd)
    take_out(modern.topic.table, ONE, few)
    modern.configure()
    settings = modern.topic.settings
    settings.write_text(settings.read_text().replace("slice_records = 25", "slice_records = 700"))
    modern.topic.spoil(ONE, 0, 500)
    result = modern.topic.replay("earliest", "latest")
    assert (result.error, result.changed) == (None, True)
    assert len(modern.topic.offsets(ONE)) == 1_000 - 333 - 2
    assert modern.topic.deep().problems == ()


def test_a_deep_verify_finds_a_row_that_is_back(topic: Loaded) -> None:
    assert topic.deep().problems == ()
    topic.lose(ONE, 7)
    assert any("lacks what its broker has: 1 row, at offsets 7" in problem for problem in topic.deep().problems)


@pytest.mark.zookeeper
def test_a_replay_of_0_7_does_not_bring_rows_back(old: Loaded) -> None:
    gone = old.offsets(OF_07)[3]
    rows = len(old.rows())
    take_out(old.table, OF_07, rows_of(gone, inner=0), inner=0)
    assert len(old.rows()) == rows - 1
    old.spoil(OF_07, old.offsets(OF_07)[5])
    result = old.replay("earliest", "latest")
    assert (result.error, result.changed, len(old.rows())) == (None, True, rows - 1)
    assert old.deep().problems == ()


def test_a_replay_does_not_bring_rows_back_that_were_taken_out_meanwhile(topic: Loaded) -> None:  # fault P16
    """The replay has read them from the brokers before."""
    topic.spoil(ONE, 50)
    table = Overtaken(lake=topic.table.lake, uri=topic.table.uri, where=topic.table.where)
    table.events.append(lambda: take_out(topic.table, ONE, rows_of(70)))
    result = topic.replay("earliest", "latest", table=table)
    assert f"{CommitRefused.__name__}: another run has taken rows of" in str(result.error)
    assert offsets_left(topic) == [*GONE, 70]
    assert topic.replay("earliest", "latest").error is None
    assert offsets_left(topic) == [*GONE, 70]


def test_a_replay_takes_no_rows_out_that_a_rewind_brought_back_meanwhile(topic: Loaded) -> None:  # fault P16
    """The replay has left retired rows out. If they are rows again, it would take them out, and nobody wanted it."""
    version = topic.version
    take_out(topic.table, ONE, rows_of(70), cause=ExactCause.RETIRED)
    topic.spoil(ONE, 50)
    table = Overtaken(lake=topic.table.lake, uri=topic.table.uri, where=topic.table.where)
    table.events.append(lambda: rewind(plan_rewind(topic.table, version, run="back")))
    result = topic.replay("earliest", "latest", table=table)
    assert f"{CommitRefused.__name__}: another run has taken rows of" in str(result.error)
    assert "or brought some back" in str(result.error)
    assert offsets_left(topic) == [*GONE]


def test_a_lost_set_refuses_a_replay(modern: Modern) -> None:
    """Nobody knows which rows must not come back."""
    settings = modern.topic.settings
    settings.write_text(settings.read_text().replace("slice_records = 25", "slice_records = 2000"))
    modern.publish(1_000)
    modern.topic.load()
    take_out(modern.topic.table, ONE, rows_of(*range(1, 1_000, 3)))
    for file in Path(modern.topic.table.uri).glob("_offsets/*"):
        file.unlink()
    version = modern.topic.version
    assert "ExactSetLost" in str(modern.topic.replay("earliest", "latest").error)
    assert modern.topic.version == version


def test_a_reference_is_used_again_if_it_has_the_same_offsets(topic: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeltaLakeTable, "store_exact", None)
    topic.spoil(ONE, 50)
    assert topic.replay("earliest", "latest").error is None
    [current, *_] = incarnations(topic.table.entries(newest(topic)))
    assert sum(part.gaps.get("erased", 0) for part in current.ranges) == len(GONE)
