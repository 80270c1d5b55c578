"""From 0.8 on slices are cut by bytes, which the table's newest commit or a sample of the log tells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from kafka_io.messages.fetch import FetchRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.records.build import Record, record_batch
from pipelines.loading import bytes_per_offset as density
from pipelines.loading.bytes_per_offset import committed_bytes_per_offset, sizes_by_bytes
from pipelines.loading.execute import fetch_here
from pipelines.loading.ledger import CommitKind, CommittedRange, LedgerEntry, TopicIdentity
from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.loading.verify import verify
from resources.kafka import open_cluster
from resources.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import CLOSE, FakeCluster, Log
from tests.fakes.records import table

A, B, C, D = (BrokerPartition(None, number) for number in range(4))
CAPS = Caps(slice_records=1000, slice_decoded_bytes=10_000)
FETCH = FetchRequest.API.key


def wanted(id_: BrokerPartition, size: int) -> OffsetRange:
    return OffsetRange(id_, 0, size)


def never(one: OffsetRange) -> float | None:
    pytest.fail(f"{one} is not to be looked at")


def of(*ranges: tuple[BrokerPartition, int, int, int]) -> LedgerEntry:
    """An entry of ranges with so many offsets, rows and bytes."""
    held = tuple(
        CommittedRange(
            offsets=OffsetRange(BrokerPartition(None, id_.partition), 0, size), rows=rows, bytes=count, loaded_at_us=0
        )
        for id_, size, rows, count in ranges
    )
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    return LedgerEntry(
        commit="c", run="r", code="", kind=CommitKind.LOAD, sequence=1, topic=topic, ranges=held, covered={}
    )


def test_a_commit_tells_the_bytes_of_an_offset_where_it_took_rows() -> None:
    entry = of((A, 100, 50, 5000), (A, 100, 100, 15_000), (B, 1000, 0, 0))
    assert committed_bytes_per_offset(entry) == {A: 100.0}
    assert committed_bytes_per_offset(None) == {}


def test_a_slice_has_as_many_records_as_come_to_its_bytes() -> None:
    sizes = sizes_by_bytes(CAPS, [wanted(A, 5000), wanted(B, 5000)], {A: 1.0, B: 100.0}, never)
    assert (sizes.target(A), sizes.target(B)) == (1000, 100)


def test_a_record_larger_than_a_slice_is_one() -> None:
    assert sizes_by_bytes(CAPS, [wanted(A, 5000)], {A: 1e9}, never).target(A) == 1


def test_a_partition_that_is_not_known_is_taken_for_one_like_the_others() -> None:
    sizes = sizes_by_bytes(Caps(slice_records=1000), [wanted(A, 9), wanted(B, 9)], {A: 2e6, C: 4e6}, never)
    assert sizes.target(B) == 2**30 // 3_000_000


def test_a_few_of_the_largest_are_looked_at() -> None:
    seen: list[BrokerPartition] = []

    def sample(one: OffsetRange) -> float | None:
        seen.append(one.partition)
        return 50.0

    many = [wanted(BrokerPartition(None, number), number) for number in range(50_000)]
    sizes = sizes_by_bytes(CAPS, many, {}, sample)
    assert seen == [BrokerPartition(None, number) for number in (49_999, 49_998, 49_997)]
    assert sizes.target(A) == 200


def test_where_nothing_can_be_told_records_are_counted() -> None:
    assert sizes_by_bytes(CAPS, [wanted(A, 5000)], {}, lambda _: None).target(A) == 1000
    assert sizes_by_bytes(CAPS, [], {}, never).target(A) == 1000


def no_spark() -> Any:
    pytest.fail("these loads fetch by themselves")


def large(count: int, size: int) -> Log:
    """A log of large records, two to a batch."""
    entries = [
        (at + 1, bytes(record_batch([Record(offset=one, value=b"%d" % one * size) for one in (at, at + 1)])))
        for at in range(0, count, 2)
    ]
    return Log(entries=entries, end=count)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., TopicLoad]:
    """Load with slices of 20 kB, of which records could be as large."""

    def run(fake: FakeCluster, fetch: Any = fetch_here) -> TopicLoad:
        settings = Settings(
            lake=str(tmp_path),
            clusters={"main": ClusterSettings(bootstrap=",".join(broker.address for broker in fake.bootstrap))},
            caps=Caps(attempts=1, request_timeout_s=5, slice_decoded_bytes=20_000),
        )
        with open_cluster(settings, "main") as cluster, patch.object(density, "_MAX_USUAL_RECORD_BYTES", 5000):
            return Loader.of(settings, cluster, no_spark, fetch=fetch).load("clicks")

    return run


def sizes_told(tmp_path: Path) -> list[int]:
    of_topic = table(tmp_path)
    [(_, entry), *_] = of_topic.entries(of_topic.snapshot())
    return [one.offsets.stop - one.offsets.start for one in entry.ranges]


def test_a_first_load_of_large_records_is_cut_by_their_bytes(load: Callable[..., TopicLoad], tmp_path: Path) -> None:
    with FakeCluster(logs={0: large(40, 1000)}) as fake:
        done = load(fake)
    assert (done.error, done.rows) == (None, 40)
    assert max(sizes_told(tmp_path)) <= 10
    assert verify(table(tmp_path)).problems == ()


def test_a_next_load_goes_by_the_newest_commit_and_looks_at_nothing(
    load: Callable[..., TopicLoad], tmp_path: Path
) -> None:
    with FakeCluster(logs={0: large(40, 1000)}) as fake:
        load(fake)
        fake.logs[0] = large(80, 1000)
        before = len(fake.heard(FETCH))
        asked: list[int] = []

        def watched(*args: Any) -> Any:
            asked.append(len(fake.heard(FETCH)) - before)
            return fetch_here(*args)

        assert load(fake, watched).rows == 40
    assert asked[0] == 0
    assert max(sizes_told(tmp_path)) <= 10


def test_a_look_that_fails_leaves_it_to_the_load_to_say_so(load: Callable[..., TopicLoad], tmp_path: Path) -> None:
    with FakeCluster(logs={0: large(40, 1000)}) as fake:
        handlers = [broker.handlers[FETCH] for broker in fake.brokers]
        for broker in fake.brokers:
            broker.handlers[FETCH] = lambda _: CLOSE

        def healed(*args: Any) -> Any:
            for broker, handler in zip(fake.brokers, handlers, strict=True):
                broker.handlers[FETCH] = handler
            return fetch_here(*args)

        done = load(fake, healed)
        assert (done.error, done.rows) == (None, 40)
        assert sizes_told(tmp_path) == [40]


def test_a_look_at_what_is_corrupt_is_no_failure_of_its_own(load: Callable[..., TopicLoad]) -> None:  # fault R01
    log = large(40, 1000)
    last, data = log.entries[0]
    log.entries[0] = (last, data[:-1] + bytes([data[-1] ^ 1]))
    with FakeCluster(logs={0: log, 1: large(10, 1000)}) as fake:
        done = load(fake)
    assert done.error is not None
    assert done.error.startswith("Corrupt")
    assert (done.retriable, done.rows) == (False, 10)
