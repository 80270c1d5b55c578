"""If the log and the table are inconsistent, a choice lets the load continue with correct rows, cursor and ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch
from uuid import UUID

import pytest
from deltalake import DeltaTable

from kafka_io.messages.list_offsets import ListOffsetsRequest
from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartitionResponse,
    LeaderEpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka_io.model import BrokerPartition
from kafka_io.wire.conversation import ReceivedRequest
from pipelines.ledger.ledger import CommitKind, LedgerEntry, RecordedChoice
from pipelines.load import discovered, planned
from pipelines.load import load as loading
from pipelines.load.load import Loader
from pipelines.plan.positions import NamedPosition
from pipelines.plan.window import LoadWindow
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.settings.choices import Choices
from resources.settings.settings import Caps, ClusterSettings, Settings
from resources.stores.lake import Lake
from resources.stores.lake_marker import read_marker
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import changed
from tests.fakes.records import holding, numbered, table, values

pytestmark = pytest.mark.slow  # each test fills a table and changes it

EPOCHS = OffsetForLeaderEpochRequest.API.key
A, B = BrokerPartition(None, 0), BrokerPartition(None, 1)


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


@contextmanager
def loader_of(
    fake: FakeCluster,
    folder: Path,
    *,
    since: NamedPosition | None = None,
    slice_records: int = Caps().slice_records,
    **chosen: str,
) -> Iterator[Loader]:
    """A loader that fetches without Spark, with the user's choices."""
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    settings = Settings(
        lake=str(folder),
        clusters={"main": ClusterSettings(bootstrap=bootstrap)},
        caps=Caps(attempts=1, request_timeout_s=5, slice_records=slice_records),
        choices=Choices.model_validate(chosen),
    )
    with open_cluster(settings, "main") as cluster:
        yield Loader.of(settings, cluster, no_spark, window=LoadWindow(since=since))


def load(fake: FakeCluster, folder: Path, *, since: NamedPosition | None = None, **chosen: Any) -> TopicLoad:
    with loader_of(fake, folder, since=since, **chosen) as loader:
        return loader.load("clicks")


def newest(folder: Path) -> LedgerEntry:
    entry = table(folder).snapshot().entry
    assert entry is not None
    return entry


def test_a_load_probes_and_marks_its_lake(fake: FakeCluster, tmp_path: Path) -> None:  # fault P13
    assert read_marker(Lake(root=str(tmp_path))) is None
    with fake:
        load(fake, tmp_path)
    assert read_marker(Lake(root=str(tmp_path))) is not None


def test_rows_are_not_taken_back_if_the_topic_is_created_again_meanwhile(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault B05
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 10)
        listing = ListOffsetsRequest.API.key
        answer = fake.brokers[0].handlers[listing]

        def recreated(received: ReceivedRequest) -> object:
            fake.topic_id = UUID(int=8)
            return answer(received)

        fake.brokers[0].handlers[listing] = recreated
        refused = load(fake, tmp_path, on_truncated="rewind").error
    assert refused is not None
    assert refused.startswith("TopicRecreated: the topic was deleted and created again while it was read")
    assert values(tmp_path) == numbered(0, 20)


# fault B07
def test_expired_offsets_become_a_gap_by_choice(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(27, 40)
        refused = load(fake, tmp_path)
        assert refused.error is not None
        assert refused.error.startswith("CursorExpired: offsets [20, 27) expired")
        assert 'on_expired = "skip"' in refused.error
        result = load(fake, tmp_path, on_expired="skip")
    assert (result.error, result.rows) == (None, 13)
    assert result.warnings == ("on_expired = skip: partition 0 [20, 27)",)
    entry = newest(tmp_path)
    assert entry.choices == (RecordedChoice(setting="on_expired", value="skip", partition="0", start=20, stop=27),)
    assert entry.covered == {A: (0, 40), B: (0, 10)}
    assert [
        (committed.offsets.start, committed.offsets.stop, committed.rows, committed.gaps) for committed in entry.ranges
    ] == [
        (20, 27, 0, {"expired": 7}),
        (27, 40, 13, {}),
    ]
    assert values(tmp_path) == [*numbered(0, 20), *numbered(27, 40)]
    assert verify(table(tmp_path)).problems == ()


# fault B07
def test_expired_offsets_are_skipped_also_if_the_log_is_empty(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = Log(entries=[], start=30, end=30)
        result = load(fake, tmp_path, on_expired="skip")
    assert (result.error, result.rows) == (None, 0)
    assert newest(tmp_path).covered[A] == (0, 30)
    assert verify(table(tmp_path)).problems == ()


# fault B03
def test_rows_beyond_the_end_of_a_shorter_log_are_taken_back_by_choice(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        fake.logs[0] = holding(0, 12)
        refused = load(fake, tmp_path)
        assert refused.error is not None
        assert refused.error.startswith("CursorAheadOfLog: the log ends at 12, before the committed offset 20")
        result = load(fake, tmp_path, on_truncated="rewind")
        assert result.error is None
        assert values(tmp_path) == numbered(0, 12)
        entry = newest(tmp_path)
        assert (entry.kind, entry.covered[A]) == (CommitKind.CUT, (0, 12))
        fake.logs[0] = holding(0, 30)
        assert load(fake, tmp_path).rows == 18
    assert values(tmp_path) == numbered(0, 30)
    assert verify(table(tmp_path)).problems == ()


# fault B04
def test_rows_of_a_log_that_was_written_again_are_taken_back_by_choice(fake: FakeCluster, tmp_path: Path) -> None:
    with fake:
        load(fake, tmp_path)
        parted = holding(0, 25, incarnation="second", epoch=6)
        fake.logs[0] = Log(entries=[*holding(0, 10).entries, *parted.entries[2:]], start=0, end=25, epoch=6)
        fake.brokers[0].handlers[EPOCHS] = lambda _: _ending_at(10)
        assert (load(fake, tmp_path).error or "").startswith("LogTruncated: offsets [10, 20)")
        result = load(fake, tmp_path, on_truncated="rewind")
    assert (result.error, result.rows) == (None, 15)
    assert result.warnings == ("on_truncated = rewind: partition 0 [10, 20)",)
    assert values(tmp_path) == [*numbered(0, 10), *numbered(10, 25, "second")]
    assert verify(table(tmp_path)).problems == ()


def _ending_at(end: int) -> OffsetForLeaderEpochResponse:
    result = LeaderEpochPartitionResponse(error_code=0, partition=0, leader_epoch=5, end_offset=end)
    return OffsetForLeaderEpochResponse(topics=(LeaderEpochTopicResponse(topic="clicks", partitions=(result,)),))


# faults B05, B06, U13
@pytest.mark.parametrize("stop", [8, 33], ids=["shorter", "longer"])
def test_a_recreated_topic_is_loaded_beside_its_former_rows_by_choice(
    stop: int, fake: FakeCluster, tmp_path: Path
) -> None:
    with fake:
        load(fake, tmp_path)
        fake.topic_id = UUID(int=8)
        fake.logs = {0: holding(0, stop, incarnation="second"), 1: holding(0, 3, incarnation="second")}
        assert (load(fake, tmp_path).error or "").startswith("TopicRecreated")
        result = load(fake, tmp_path, on_recreated="restart")
        assert (result.error, result.rows) == (None, stop + 3)
        assert newest(tmp_path).covered == {A: (0, stop), B: (0, 3)}
        assert {choice.setting for choice in newest(tmp_path).choices} == {"on_recreated"}
        assert load(fake, tmp_path).rows == 0
    assert values(tmp_path) == [*numbered(0, 20), *numbered(0, stop, "second")]
    key = ["broker", "partition", "offset", "inner"]
    rows = DeltaTable(table(tmp_path).uri).to_pyarrow_table()
    assert len(set(zip(*rows.select(key).to_pydict().values(), strict=True))) == max(20, stop) + 10
    unique = {tuple(row.values()) for row in rows.select([*key, "loaded_at"]).to_pylist()}
    assert len(unique) == rows.num_rows == 20 + 10 + stop + 3  # fault U13
    proof = verify(table(tmp_path))
    assert proof.problems == ()
    assert [(partition.offsets.partition.partition, partition.rows) for partition in proof.partitions] == [
        (0, stop),
        (1, 3),
        (0, 20),
        (1, 10),
    ]


# faults E08, U13
@pytest.mark.parametrize("step", [timedelta(0), timedelta(microseconds=-300)], ids=["stands still", "goes back"])
def test_two_incarnations_have_no_loading_time_in_common(step: timedelta, fake: FakeCluster, tmp_path: Path) -> None:
    times = count()

    def now() -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, 123_457, tzinfo=UTC) + next(times) * step

    def load_now() -> None:
        with loader_of(fake, tmp_path, on_recreated="restart") as loader:
            assert changed(loader, now=now).load("clicks").error is None

    with fake:
        for incarnation in (7, 8, 9):
            fake.topic_id = UUID(int=incarnation)
            for stop in (10, 20):
                fake.logs = {0: holding(0, stop), 1: holding(0, stop)}
                load_now()
    assert verify(table(tmp_path)).problems == ()
    rows = DeltaTable(table(tmp_path).uri).to_pyarrow_table(columns=["partition", "offset", "loaded_at"]).to_pylist()
    assert len({tuple(row.values()) for row in rows}) == len(rows) == 3 * 2 * 20


def test_a_slow_run_does_not_take_the_table_back_to_a_former_incarnation(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault B05
    """The run looks the topic up; then another run restarts the table with a still newer, empty incarnation."""
    others: list[tuple[str | None, LedgerEntry]] = []

    def create_again(step: str) -> None:
        if step == "discovered" and fake.topic_id == UUID(int=8):
            fake.topic_id = UUID(int=9)
            others.append((load(fake, tmp_path, on_recreated="restart").error, newest(tmp_path)))

    with fake:
        load(fake, tmp_path)
        fake.logs = {0: Log(entries=[], start=0, end=0), 1: Log(entries=[], start=0, end=0)}
        fake.topic_id = UUID(int=8)
        with patch.object(discovered, "failpoint", create_again):
            slow = load(fake, tmp_path, on_recreated="restart").error
    assert (slow or "").startswith("TopicRecreated: the topic was deleted and created again while it was read")
    assert others == [(None, newest(tmp_path))]


# faults B05, B10, P27
@pytest.mark.parametrize("name", ["topic id", "messages"])
@pytest.mark.parametrize("choice", ["restart", "adopt"])
def test_a_topic_that_is_created_again_between_two_steps_is_planned_by_the_next_load(
    choice: str, name: str, fake: FakeCluster, tmp_path: Path
) -> None:
    """The run has found out where the former topic begins, and the new one has records before that."""
    fake.logs = {0: replace(holding(5, 40), epoch=-1), 1: holding(0, 0)}
    if name == "messages":
        fake.topic_id = UUID(int=0)

    def create_again(step: str) -> None:
        if step == "mirrored" and newest(tmp_path).covered:
            fake.topic_id = UUID(int=8 if name == "topic id" else 0)
            fake.logs = {0: holding(0, 33, incarnation="second"), 1: holding(0, 0)}

    with fake:
        with patch.object(planned, "_STEP_SLICES", 1), patch.object(loading, "failpoint", create_again):
            result = load(fake, tmp_path, slice_records=10, on_recreated=choice)
        start, stop = newest(tmp_path).covered[A]
        assert (start, stop < 40, newest(tmp_path).choices) == (5, True, ())
        assert "created again while it was loaded; load again" in (result.error or "")
        assert load(fake, tmp_path, on_recreated=choice).error is None
        begin = 0 if choice == "restart" else stop
        assert newest(tmp_path).covered[A] == (0 if choice == "restart" else 5, 33)
    assert values(tmp_path) == [*numbered(5, stop), *numbered(begin, 33, "second")]


def test_a_partition_that_vanished_stops_the_topic_unless_it_may_wait(
    fake: FakeCluster, tmp_path: Path
) -> None:  # fault B11
    with fake:
        load(fake, tmp_path)
        fake.logs = {0: holding(0, 30)}
        error = load(fake, tmp_path).error
        assert error is not None
        assert error.startswith(
            "PartitionsVanished: the topic has 1 partitions, but not these, which the table holds: 1 (loaded"
        )
        result = load(fake, tmp_path, on_vanished="wait")
    assert (result.error, result.rows) == (None, 10)
    assert newest(tmp_path).covered == {A: (0, 30), B: (0, 10)}


def test_an_unknown_choice_is_named() -> None:
    with pytest.raises(ValueError, match="on_expired must be 'fail' or 'skip'"):
        Choices().with_overrides({"on_expired": "ignore"})
    assert Choices(on_expired="skip").with_overrides({"on_expired": None, "on_recreated": "restart"}) == Choices(
        on_expired="skip", on_recreated="restart"
    )
