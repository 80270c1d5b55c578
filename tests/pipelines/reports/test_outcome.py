"""The result of a load: for each partition, for the topic, and for the slowest slice."""

import json
import tracemalloc
from dataclasses import replace

import pytest

from kafka_io.errors import Corrupt, LocatedError, NetworkError, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.coverage import extended
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import TableState, TopicIdentity
from pipelines.ledger.slice_facts import DataFile, Observations, SliceFacts
from pipelines.reports.outcome import RunRecord, TopicLoad
from resources.errors import CommitRefused, CommitUnknown, CursorExpired, LakeUnavailable, LogTorn
from resources.printed import printed

A, B, C = (BrokerPartition(None, number) for number in range(3))
CLICKS = TopicIdentity(cluster="main", name="clicks", incarnation="7")


def fetched(partition: BrokerPartition, start: int, stop: int, seconds: float, **changes: object) -> SliceFacts:
    size = stop - start
    fields = {"rows": size, "bytes": 10 * size, "source": "1@host:9092", **changes}
    loaded = CommittedRange(offsets=OffsetRange(partition, start, stop), **fields)  # type: ignore[arg-type] # a test's own words
    files = (DataFile(path=f"{partition}-{start}", size=1, rows=loaded.rows),) if loaded.rows else ()
    return SliceFacts(range=loaded, files=files, observed=Observations(seconds=seconds))


def new_run() -> RunRecord:
    return RunRecord(topic="clicks", table="/lake/clicks")


def add_step(
    run: RunRecord, *facts: SliceFacts, covered: dict[BrokerPartition, tuple[int, int]], latest: int = 100
) -> None:
    bounds = {
        A: Bounds(earliest=0, latest=latest),
        B: Bounds(earliest=0, latest=50),
        C: Bounds(earliest=7, latest=7),
    }
    run.begin_step([], bounds, TableState(topic=CLICKS, covered=covered))
    run.add(facts, extended(covered, [part.offsets for part in facts]))


def load_of_one_step(*facts: SliceFacts, covered: dict[BrokerPartition, tuple[int, int]] | None = None) -> TopicLoad:
    run = new_run()
    add_step(run, *facts, covered=covered or {})
    return run.outcome(seconds=1.0)


def test_a_load_reports_each_partition_and_the_sums() -> None:
    gap = fetched(A, 20, 30, 0.0, rows=0, source="", bytes=0, gaps={"expired": 10})
    load = load_of_one_step(
        gap, fetched(A, 30, 60, 2.0), fetched(A, 60, 80, 3.0, source="2@host:9093"), covered={A: (0, 20), B: (0, 50)}
    )
    first, second = load.partitions
    assert (first.offsets.start, first.offsets.stop, first.rows, first.bytes, first.files) == (20, 80, 50, 500, 2)
    assert (first.lag_before, first.lag, first.gaps, first.seconds) == (80, 20, {"expired": 10}, 5.0)
    assert first.source == "2@host:9093"
    assert (second.offsets, second.lag_before, second.lag, second.source) == (OffsetRange(B, 50, 50), 0, 0, "")
    assert (load.rows, load.bytes, load.files, load.lag_before, load.lag) == (50, 500, 2, 80, 20)


def test_the_lag_of_a_load_counts_what_an_open_transaction_holds_back() -> None:  # fault N06
    run = new_run()
    held_back = {A: Bounds(earliest=0, latest=10, held_back=5), B: Bounds(earliest=0, latest=0, held_back=7)}
    run.begin_step([], held_back, TableState(topic=CLICKS))
    run.add([fetched(A, 0, 10, 1.0)], {A: (0, 10)})
    load = run.outcome(seconds=1.0)
    assert [(partition.lag_before, partition.lag) for partition in load.partitions] == [(15, 5), (7, 7)]


def test_partitions_that_are_empty_everywhere_are_left_out() -> None:  # fault S10
    assert [partition.offsets.partition for partition in load_of_one_step().partitions] == [A, B]


def test_the_slowest_slice_is_reported_with_its_range() -> None:
    load = load_of_one_step(fetched(A, 0, 60, 2.0), fetched(A, 60, 80, 3.25))
    assert str(load.slowest) == "partition 0 [60, 80): 20 rows in 3.2 s"
    assert load_of_one_step().slowest is None


def test_the_steps_of_a_run_add_up() -> None:
    run = new_run()
    add_step(run, fetched(A, 0, 60, 2.0), fetched(B, 0, 50, 9.0), covered={})
    add_step(run, fetched(A, 60, 80, 3.0), covered={A: (0, 60), B: (0, 50)}, latest=110)
    load = run.outcome(seconds=1.0)
    assert (load.rows, load.lag_before, load.lag) == (130, 150, 30)
    assert (load.partitions[0].bytes, load.partitions[0].files, load.partitions[0].seconds) == (800, 2, 5.0)
    assert (load.partitions[1].offsets, load.partitions[1].source) == (OffsetRange(B, 0, 50), "1@host:9092")
    assert str(load.slowest) == "partition 1 [0, 50): 50 rows in 9.0 s"


def test_a_backfill_extends_the_range_of_its_run_downwards() -> None:
    run = new_run()
    add_step(run, fetched(A, 40, 60, 2.0), covered={A: (60, 80)})
    add_step(run, fetched(A, 20, 40, 2.0), covered={A: (40, 80)})
    load = run.outcome(seconds=1.0).partitions[0]
    assert (load.offsets, load.lag_before, load.lag) == (OffsetRange(A, 20, 60), 20, 20)


@pytest.mark.slow
def test_the_memory_of_a_run_does_not_grow_with_its_slices() -> None:  # fault S10
    run = new_run()
    run.begin_step([], {A: Bounds(earliest=0, latest=10**9)}, TableState(topic=CLICKS))
    sizes = []
    tracemalloc.start()
    try:
        for step in range(6):
            facts = [fetched(A, start, start + 10, 0.5) for start in range(step * 10_000, (step + 1) * 10_000, 10)]
            run.add(facts, {A: (0, facts[-1].offsets.stop)})
            del facts
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[-1] - sizes[0] < 20_000
    assert run.outcome(seconds=1.0).rows == 60_000


def test_rates_are_those_of_the_whole_load() -> None:
    assert TopicLoad(topic="a", table="b", rows=500, bytes=9000, seconds=2.0).rows_per_second == 250.0
    assert TopicLoad(topic="a", table="b", rows=500, bytes=9000, seconds=2.0).bytes_per_second == 4500.0
    assert TopicLoad(topic="a", table="b").rows_per_second == 0.0


def test_a_load_is_printed_as_json() -> None:
    shown = json.loads(json.dumps(printed(load_of_one_step(fetched(A, 0, 60, 2.0)))))
    assert (shown["lag_before"], shown["lag"]) == (150, 90)
    assert shown["slowest"] == {"broker": None, "partition": 0, "start": 0, "stop": 60, "rows": 60, "seconds": 2.0}
    assert shown["partitions"][0]["source"] == "1@host:9092"


def test_a_load_may_be_tried_again_if_one_of_its_failures_is_temporary() -> None:
    permanent = SliceFailure.of(Corrupt("bad checksum", Where(partition=1)), Where(topic="clicks"))
    temporary = SliceFailure.of(NetworkError("no answer"), Where(topic="clicks"))
    run = new_run()
    assert run.outcome(seconds=0.0).error is None
    run.failures = [permanent]
    assert run.outcome(seconds=0.0).retriable is False
    run.failures = [temporary, replace(permanent, trace="lines")]
    load = run.outcome(seconds=0.0)
    assert (load.retriable, load.trace) == (True, "lines")
    assert load.error == "NetworkError: no answer [topic=clicks] (PS-202) (and 1 more)"


@pytest.mark.parametrize(
    ("kind", "retriable"),
    [(LakeUnavailable, True), (CommitRefused, True), (CommitUnknown, True), (LogTorn, False), (CursorExpired, False)],
)
def test_errors_of_the_store_and_of_rival_runs_are_temporary_and_damage_is_not(
    kind: type[LocatedError], retriable: bool
) -> None:
    assert SliceFailure.of(kind("why"), Where(topic="clicks")).retriable is retriable


def test_a_lag_that_the_broker_did_not_report_is_unknown() -> None:  # fault U08
    run = new_run()
    run.begin_step([A, B], {A: Bounds(earliest=0, latest=100)}, TableState(topic=CLICKS, covered={B: (0, 50)}))
    run.add([], {B: (0, 50)})
    load = run.outcome(seconds=1.0)
    assert [(part.offsets, part.lag_before, part.lag) for part in load.partitions] == [
        (OffsetRange(A, 0, 0), 100, 100),
        (OffsetRange(B, 50, 50), None, None),
    ]
    assert (load.lag_before, load.lag) == (None, None)


def test_a_load_that_failed_before_it_knew_the_logs_has_no_lag_and_all_its_errors() -> None:  # fault U08
    run = new_run()
    run.failures = [
        SliceFailure.of(NetworkError("no answer"), Where(topic="clicks", partition=number)) for number in (0, 1)
    ]
    shown = printed(run.outcome(seconds=0.0))
    assert (shown["lag"], [error["partition"] for error in shown["errors"]]) == (None, ["0", "1"])
