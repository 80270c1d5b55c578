"""Where partitions begin that a table does not cover yet: lost records are reported, and unwanted ones not loaded."""

import json
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import pytest

from kafka_io.messages.fetch import FetchRequest
from kafka_io.model import BrokerPartition
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.ledger.ledger import LedgerEntry
from pipelines.load import load as loading
from pipelines.load import planned
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.settings.choices import Choices
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import CLOSE, FakeCluster, Log
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding, numbered, table, values

A, B, C = (BrokerPartition(None, number) for number in range(3))
NOBODY = -1


def no_spark() -> NoReturn:
    pytest.fail("these loads fetch by themselves")


def load(
    fake: FakeCluster, folder: Path, *, slice_records: int = 5, run: int | None = None, **overrides: Any
) -> TopicLoad:
    """Load with slices of a few records, two of them in a step."""
    settings = Settings(
        lake=str(folder),
        clusters={"main": ClusterSettings(bootstrap=",".join(broker.address for broker in fake.bootstrap))},
        caps=Caps(attempts=1, request_timeout_s=5, slice_records=slice_records, records_per_run=run),
    )
    with open_cluster(settings, "main") as cluster, patch.object(planned, "_STEP_SLICES", 2):
        return loader_of(settings, cluster, no_spark, **{"fetch": fetch_here, **overrides}).load("clicks")


def newest(folder: Path) -> LedgerEntry:
    entry = table(folder).snapshot().entry
    assert entry is not None
    return entry


def check_refused_until_chosen(fake: FakeCluster, folder: Path, lost: str, rows: int) -> None:
    """Check that partition 0 is refused with the lost offsets until the user chooses to skip them."""
    for _ in range(2):
        refused = load(fake, folder)
        assert str(refused.error).startswith(f"CursorExpired: offsets {lost} expired before they were loaded")
        assert 'on_expired = "skip"' in str(refused.error)
        assert "partition=0" in str(refused.error)
    result = load(fake, folder, choices=Choices(on_expired="skip"))
    assert (result.error, result.rows) == (None, rows)
    assert verify(table(folder)).problems == ()


# faults P01, N07
def test_records_that_expire_in_a_partition_that_was_empty_at_the_first_load_are_reported(
    fake: FakeCluster, tmp_path: Path
) -> None:
    fake.logs[0] = Log(entries=[], end=0)
    with fake:
        assert load(fake, tmp_path).rows == 10
        fake.logs = {0: holding(60, 100), 1: holding(0, 15)}
        first = load(fake, tmp_path)
        assert (first.rows, values(tmp_path, 1)) == (5, numbered(0, 15))
        assert "offsets [0, 60) expired" in str(first.error)
        check_refused_until_chosen(fake, tmp_path, "[0, 60)", 40)
    assert newest(tmp_path).covered == {A: (0, 100), B: (0, 15)}


def test_an_empty_topic_begins_with_its_first_load(fake: FakeCluster, tmp_path: Path) -> None:  # fault P01
    fake.logs = {0: Log(entries=[], start=30, end=30), 1: Log(entries=[], end=0)}
    with fake:
        assert load(fake, tmp_path).rows == 0
        assert newest(tmp_path).covered == {A: (30, 30)}
        fake.logs = {0: holding(40, 50), 1: holding(0, 10)}
        assert load(fake, tmp_path).rows == 10
        check_refused_until_chosen(fake, tmp_path, "[30, 40)", 10)


def test_records_of_an_added_partition_that_expire_before_its_first_load_are_reported(
    fake: FakeCluster, tmp_path: Path
) -> None:  # faults P01, B10
    added = holding(60, 100)
    fake.logs = {1: holding(0, 10)}
    with fake:
        load(fake, tmp_path)
        fake.logs = {0: added, 1: holding(0, 10)}
        check_refused_until_chosen(fake, tmp_path, "[0, 60)", 40)


def test_a_partition_whose_first_fetch_fails_begins_where_its_log_began(fake: FakeCluster, tmp_path: Path) -> None:
    """See fault P01."""
    fake.logs[0] = holding(30, 50)
    with fake:
        for broker in fake.brokers:
            broker.handlers[FetchRequest.API.key] = lambda _: CLOSE
        assert load(fake, tmp_path).error is not None
        assert newest(tmp_path).covered == {A: (30, 30)}
    fake.logs[0] = holding(40, 50)
    with fake:
        check_refused_until_chosen(fake, tmp_path, "[30, 40)", 10)
    assert newest(tmp_path).covered == {A: (30, 50), B: (0, 10)}


def test_a_partition_without_a_leader_at_the_first_load_begins_at_offset_0(fake: FakeCluster, tmp_path: Path) -> None:
    """See fault P01: nobody knows where its log began."""
    fake.logs[0].leader = NOBODY
    with fake:
        first = load(fake, tmp_path)
        assert (first.rows, first.retriable) == (10, True)
        fake.logs[0] = holding(60, 100)
        check_refused_until_chosen(fake, tmp_path, "[0, 60)", 40)


@pytest.mark.parametrize(
    "log",
    [Log(entries=[], end=0, leader=NOBODY), Log(entries=[], start=100, end=0)],
    ids=["without a leader", "with bounds that are impossible"],
)
def test_the_start_latest_holds_for_a_partition_that_cannot_be_loaded_at_the_first_load(
    log: Log, fake: FakeCluster, tmp_path: Path
) -> None:  # faults P02, B14
    later, fake.logs[0] = fake.logs[0], log
    with fake:
        for _ in range(2):
            assert "partition=0" in str(load(fake, tmp_path, start="latest").error)
            entry = newest(tmp_path)
            assert (entry.covered, set(entry.state.start_times)) == ({B: (10, 10)}, {A})
        fake.logs[0] = later
        assert load(fake, tmp_path).rows == 0
        assert (newest(tmp_path).covered, newest(tmp_path).state.start_times) == ({A: (20, 20), B: (10, 10)}, {})
        fake.logs[0] = holding(0, 25)
        assert load(fake, tmp_path).rows == 5
    assert verify(table(tmp_path)).problems == ()


@pytest.mark.parametrize("held_from", [0, 10])
def test_the_start_latest_is_before_a_transaction_that_is_open_then(
    held_from: int, fake: FakeCluster, tmp_path: Path
) -> None:
    """See fault P02. At offset 0 no commit records the start, and no time may replace it: the records can be older."""
    fake.logs[0].stable = held_from
    with fake:
        assert load(fake, tmp_path, start="latest").rows == 0
        fake.logs[0].stable = None
        assert load(fake, tmp_path).rows == 20 - held_from
    assert newest(tmp_path).covered == {A: (held_from, 20), B: (10, 10)}


def test_the_ledger_keeps_the_start_of_partitions_and_reads_entries_of_older_versions_without_it(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault P02
    fake.logs[0].leader = NOBODY
    with fake:
        load(fake, tmp_path, start="latest")
    entry = newest(tmp_path)
    stored = json.loads(entry.to_json())
    assert LedgerEntry.from_json(json.dumps(stored)) == entry
    del stored["start_times"]
    assert LedgerEntry.from_json(json.dumps(stored)).state.start_times == {}


# fault N07
def test_an_expired_partition_keeps_no_other_partition_from_being_loaded_in_all_steps(
    fake: FakeCluster, tmp_path: Path
) -> None:
    with fake:
        load(fake, tmp_path)
        fake.logs = {0: holding(30, 50), 1: holding(0, 60)}
        result = load(fake, tmp_path)
        assert (result.rows, values(tmp_path, 1)) == (50, numbered(0, 60))
        assert "and 1 more" not in str(result.error)
        check_refused_until_chosen(fake, tmp_path, "[20, 30)", 20)


def test_a_partition_that_fails_in_a_step_is_left_out_of_the_later_steps(fake: FakeCluster, tmp_path: Path) -> None:
    """See fault N07."""
    fake.logs[1] = holding(0, 60)
    failed: list[BrokerPartition] = []

    def failing(tasks: Any, on_progress: Any, _ahead: Any) -> Any:
        failed.extend(task.offsets.partition for task in tasks if task.offsets.partition == A)
        return fetch_here(tasks, on_progress)

    with fake:
        fake.logs[0].entries[0] = (4, b"no batch")
        result = load(fake, tmp_path, fetch=failing)
    assert (result.rows, values(tmp_path, 1), len(failed)) == (60, numbered(0, 60), 1)
    assert "partition=0" in str(result.error)


# faults U05, L05
def test_a_load_whose_slice_another_load_overlaps_loads_the_rest(fake: FakeCluster, tmp_path: Path) -> None:
    others: list[TopicLoad] = []

    def load_meanwhile(*args: Any) -> Any:
        if not others:
            others.append(load(fake, tmp_path, slice_records=7, run=7))
        return fetch_here(*args)

    with fake:
        result = load(fake, tmp_path, slice_records=10, fetch=load_meanwhile)
    assert [other.error for other in (*others, result)] == [None, None]
    assert (values(tmp_path), values(tmp_path, 1)) == (numbered(0, 20), numbered(0, 10))
    assert 0 < others[0].rows < 30
    assert verify(table(tmp_path)).problems == ()


def test_a_load_that_is_overtaken_names_the_run_that_was_first(fake: FakeCluster, tmp_path: Path) -> None:
    """See fault L05."""

    def load_meanwhile(*args: Any) -> Any:
        load(fake, tmp_path, run_id="rival")
        return fetch_here(*args)

    with fake:
        result = load(fake, tmp_path, fetch=load_meanwhile)
    assert (result.error, result.rows, values(tmp_path)) == (None, 0, numbered(0, 20))
    assert result.warnings == ("run rival committed the same offsets first",)


# fault U05
def test_a_load_from_the_end_also_loads_what_lies_between_if_another_load_begins_the_table_earlier(
    fake: FakeCluster, tmp_path: Path
) -> None:
    others: list[TopicLoad | None] = []

    def begin_earlier(step: str) -> None:
        if step == "planned" and not others:
            others.append(None)
            others.append(load(fake, tmp_path, run=4))

    with fake, patch.object(loading, "failpoint", begin_earlier):
        result = load(fake, tmp_path, start="latest")
    assert others[1] is not None
    assert (others[1].rows, others[1].error, result.error) == (4, None, None)
    assert (values(tmp_path), values(tmp_path, 1)) == (numbered(0, 20), numbered(0, 10))
