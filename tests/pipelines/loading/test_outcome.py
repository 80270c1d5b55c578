"""The result of a load: for each partition, for the topic, and for the slowest slice."""

import json

import pytest

from kafka_io.errors import Corrupt, LocatedError, NetworkError, Where
from kafka_io.model import Bounds, BrokerPartition, OffsetRange
from pipelines.loading.outcome import TopicLoad, outcome
from pipelines.loading.work import SliceFacts, SliceFailure
from resources.errors import CommitRefused, CommitUnknown, CursorExpired, LakeUnavailable, LogTorn

A, B, C = (BrokerPartition(None, number) for number in range(3))


def fetched(id_: BrokerPartition, start: int, stop: int, seconds: float, **rest: object) -> SliceFacts:
    size = stop - start
    told = {"rows": size, "bytes": 10 * size, "path": f"{id_}-{start}", "source": "1@host:9092", **rest}
    return SliceFacts(offsets=OffsetRange(BrokerPartition(None, id_.partition), start, stop), seconds=seconds, **told)  # type: ignore[arg-type] # a test's own words


def step(*facts: SliceFacts, covered: dict[BrokerPartition, tuple[int, int]], latest: int = 100) -> TopicLoad:
    bounds = {
        A: Bounds(earliest=0, latest=latest),
        B: Bounds(earliest=0, latest=50),
        C: Bounds(earliest=7, latest=7),
    }
    return outcome(facts, bounds, covered, topic="clicks", table="/lake/clicks", version=3, warnings=())


def test_a_load_tells_what_it_did_to_each_partition_and_in_all() -> None:
    gap = fetched(A, 20, 30, 0.0, rows=0, path=None, source="", bytes=0, gaps={"expired": 10})
    done = step(
        gap, fetched(A, 30, 60, 2.0), fetched(A, 60, 80, 3.0, source="2@host:9093"), covered={A: (0, 20), B: (0, 50)}
    )
    first, second = done.partitions
    assert (first.offsets.start, first.offsets.stop, first.rows, first.bytes, first.files) == (20, 80, 50, 500, 2)
    assert (first.lag_before, first.lag, first.gaps, first.seconds) == (80, 20, {"expired": 10}, 5.0)
    assert first.source == "2@host:9093"
    assert (second.offsets.start, second.offsets.stop, second.lag_before, second.lag, second.source) == (
        50,
        50,
        0,
        0,
        "",
    )
    assert (done.rows, done.bytes, done.files, done.lag_before, done.lag) == (50, 500, 2, 80, 20)


def test_partitions_of_which_nobody_has_anything_are_not_told_of() -> None:  # fault S10
    assert [one.offsets.partition.partition for one in step(covered={}).partitions] == [0, 1]


def test_the_slowest_slice_is_told_with_its_range() -> None:
    done = step(fetched(A, 0, 60, 2.0), fetched(A, 60, 80, 3.25), covered={})
    assert str(done.slowest) == "partition 0 [60, 80): 20 rows in 3.2 s"
    assert step(covered={}).slowest is None


def test_steps_add_up() -> None:
    first = step(fetched(A, 0, 60, 2.0), fetched(B, 0, 50, 9.0), covered={})
    second = step(fetched(A, 60, 80, 3.0), covered={A: (0, 60), B: (0, 50)}, latest=110)
    done = first.then(second)
    assert (done.rows, done.lag_before, done.lag) == (130, 150, 30)
    assert (done.partitions[0].bytes, done.partitions[0].files, done.partitions[0].seconds) == (800, 2, 5.0)
    assert done.partitions[1].source == "1@host:9092"
    assert done.slowest == first.slowest


def test_rates_are_those_of_the_whole_load() -> None:
    assert TopicLoad(topic="a", table="b", rows=500, bytes=9000, seconds=2.0).rows_per_second == 250.0
    assert TopicLoad(topic="a", table="b", rows=500, bytes=9000, seconds=2.0).bytes_per_second == 4500.0
    assert TopicLoad(topic="a", table="b").rows_per_second == 0.0


def test_it_is_told_as_json() -> None:
    told = json.loads(json.dumps(step(fetched(A, 0, 60, 2.0), covered={}).as_dict()))
    assert (told["lag_before"], told["lag"]) == (150, 90)
    assert told["slowest"] == {"broker": None, "partition": 0, "start": 0, "stop": 60, "rows": 60, "seconds": 2.0}
    assert told["partitions"][0]["source"] == "1@host:9092"


def test_what_may_pass_is_told_apart_from_what_stays() -> None:
    stays = SliceFailure.of(Corrupt("bad checksum", Where(partition=1)), Where(topic="clicks"), trace="lines")
    passes = SliceFailure.of(NetworkError("no answer"), Where(topic="clicks"), trace="")
    load = TopicLoad(topic="clicks", table="")
    assert load.failed([]) == load
    assert load.failed([stays]).retriable is False
    done = load.failed([passes, stays])
    assert (done.retriable, done.trace) == (True, "lines")
    assert done.error == "NetworkError: no answer [topic=clicks] (and 1 more)"


@pytest.mark.parametrize(
    ("kind", "passing"),
    [(LakeUnavailable, True), (CommitRefused, True), (CommitUnknown, True), (LogTorn, False), (CursorExpired, False)],
)
def test_trouble_of_the_store_and_rivals_may_pass_and_damage_stays(kind: type[LocatedError], passing: bool) -> None:
    assert SliceFailure.of(kind("why"), Where(topic="clicks"), trace="").retriable is passing
