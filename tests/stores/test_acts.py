"""Commands in real stores: whatever runs, is killed or races, each record has its row exactly once."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.stores.lake import filesystem
from resources.stores.lake_marker import use_lake
from tests.stores.stored_topic import LOAD, StoredTopic
from tests.stores.table import ASKED

pytestmark = pytest.mark.slow  # servers of stores

_STEPS = ("file opened", "before load entry", "log entry written")
_ALL_STEPS = (
    "table made",
    "planned",
    "batch fetched",
    *_STEPS,
    "file written",
    "file closed",
    "fetched",
    "files checked",
    "after load entry",
    "log entry found",
)
"""The steps at which `make stores` kills loads."""


@pytest.mark.stores("load")
def test_loads_continue_and_a_load_with_nothing_new_commits_nothing(topic: StoredTopic) -> None:
    use_lake(topic.table.lake)
    topic.load()
    topic.grow()
    assert topic.load().rows == 20
    topic.check()
    version = topic.version
    assert topic.load().rows == 0
    assert topic.version == version


@pytest.mark.stores("rewind")
def test_a_rewind_takes_rows_back_and_the_next_load_restores_them(topic: StoredTopic) -> None:
    topic.load()
    first, before = topic.version, topic.positions()
    topic.grow()
    topic.load()
    topic.rewind(first)
    assert topic.positions() == before
    topic.load()
    topic.check()


@pytest.mark.stores("replay")
def test_a_replay_restores_lost_rows(topic: StoredTopic) -> None:
    topic.load()
    topic.handle.delete('partition = 0 AND "offset" IN (3, 4)')
    assert len(topic.positions()) == 28
    topic.replay("earliest", "latest")
    topic.check()


@pytest.mark.stores("clean")
def test_clean_deletes_files_that_no_commit_names_and_merges_small_ones(topic: StoredTopic) -> None:
    for _ in range(3):
        topic.load()
        topic.grow()
    topic.load()
    files, orphan = filesystem(topic.table.uri, topic.table.lake.options), "date=2026-01-02/orphan.parquet"
    pq.write_table(pa.table({"value": [1]}), orphan, filesystem=files)
    cleaned = topic.clean()
    assert orphan in cleaned.collected
    assert cleaned.merged > cleaned.larger > 0
    topic.clean()
    topic.grow()
    topic.load()
    topic.check()


@pytest.mark.crash
@pytest.mark.stores("two loads")
def test_of_two_loads_of_the_same_records_one_commits(topic: StoredTopic) -> None:
    topic.load()
    topic.grow()
    drivers = [topic.start(*LOAD, kill_at="stop:before load entry") for _ in range(2)]
    assert [driver.stopped() for driver in drivers] == [True, True]
    for driver in drivers:
        driver.resume()
    ended = [driver.wait() for driver in drivers]
    assert [driver.code for driver in ended] == [0, 0], ended
    assert sum("committed the same offsets first" in driver.output for driver in ended) == 1
    topic.check()


@pytest.mark.crash
@pytest.mark.stores("kill -9")
def test_a_load_that_is_killed_at_any_step_is_continued(topic: StoredTopic) -> None:
    for step in _STEPS if ASKED not in os.environ else _ALL_STEPS:
        ended = topic.start(*LOAD, kill_at=step).wait()
        assert (ended.code, ended.reached) == (-9, (step,)), ended
        topic.grow(5)
    topic.load()
    topic.check()
