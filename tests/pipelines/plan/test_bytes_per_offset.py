"""From 0.8 on slices are cut by bytes, as estimated from the table's newest commit or from a sample."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from kafka_io.messages.fetch import FetchRequest
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.reader import FetchSizes, PlannedRange
from kafka_io.records.build import Record, record_batch
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.ledger.committed_range import CommittedRange
from pipelines.ledger.ledger import CommitKind, LedgerEntry, TableState, TopicIdentity
from pipelines.plan import bytes_per_offset as density
from pipelines.plan.bytes_per_offset import committed_bytes_per_offset, read_sample, sizes_by_bytes
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.fakes.cluster import CLOSE, FakeCluster, Log
from tests.fakes.loaders import loader_of
from tests.fakes.records import table
from tests.small_table import SOURCE

A, B, C, D = (BrokerPartition(None, number) for number in range(4))
CAPS = Caps(slice_records=1000, slice_decoded_bytes=10_000)
FETCH = FetchRequest.API.key


def wanted(id_: BrokerPartition, size: int) -> OffsetRange:
    return OffsetRange(id_, 0, size)


def never(offsets: OffsetRange) -> float | None:
    pytest.fail(f"{offsets} is not to be looked at")


def of(*ranges: tuple[BrokerPartition, int, int, int]) -> LedgerEntry:
    """An entry of ranges with so many offsets, rows and bytes."""
    present = tuple(
        CommittedRange(
            offsets=OffsetRange(BrokerPartition(None, id_.partition), 0, size), rows=rows, bytes=count, loaded_at_us=0
        )
        for id_, size, rows, count in ranges
    )
    topic = TopicIdentity(cluster="main", name="clicks", incarnation="7")
    state = TableState(topic=topic)
    return LedgerEntry(commit="c", run="r", code="", kind=CommitKind.LOAD, sequence=1, ranges=present, state=state)


def test_a_commit_gives_the_bytes_per_offset_of_partitions_with_rows() -> None:
    entry = of((A, 100, 50, 5000), (A, 100, 100, 15_000), (B, 1000, 0, 0))
    assert committed_bytes_per_offset(entry) == {A: 100.0}
    assert committed_bytes_per_offset(None) == {}
    assert committed_bytes_per_offset(of((A, 100, 50, 0), (B, 100, 0, 50))) == {}


def test_a_slice_has_as_many_records_as_fit_into_its_bytes() -> None:
    sizes = sizes_by_bytes(CAPS, [wanted(A, 5000), wanted(B, 5000)], {A: 1.0, B: 100.0}, never)
    assert (sizes.target(A), sizes.target(B)) == (1000, 100)


def test_a_record_larger_than_a_slice_is_a_slice_of_its_own() -> None:
    assert sizes_by_bytes(CAPS, [wanted(A, 5000)], {A: 1e9}, never).target(A) == 1


def test_an_unknown_partition_gets_the_mean_of_the_others() -> None:
    sizes = sizes_by_bytes(Caps(slice_records=1000), [wanted(A, 9), wanted(B, 9)], {A: 2e6, C: 4e6}, never)
    assert sizes.target(B) == 2**30 // 3_000_000


def test_only_a_few_of_the_largest_ranges_are_sampled() -> None:
    seen: list[BrokerPartition] = []

    def sample(offsets: OffsetRange) -> float | None:
        seen.append(offsets.partition)
        return 50.0

    many = [wanted(BrokerPartition(None, number), number) for number in range(50_000)]
    sizes = sizes_by_bytes(CAPS, many, {}, sample)
    assert seen == [BrokerPartition(None, number) for number in (49_999, 49_998, 49_997)]
    assert sizes.target(A) == 200


def test_ranges_that_certainly_fit_into_one_slice_are_not_sampled() -> None:
    caps = Caps(slice_records=1000, slice_decoded_bytes=5 * density._MAX_USUAL_RECORD_BYTES)
    assert sizes_by_bytes(caps, [wanted(A, 5)], {}, never).target(A) == 1000


@pytest.mark.parametrize(("size", "sampled"), [(100, 100), (1000, 256)])
def test_a_sample_is_a_few_records(size: int, sampled: int) -> None:
    reader = Mock()
    reader.read.return_value = ()
    with patch.object(density, "_for_sample", return_value=Mock(open=lambda: reader)):
        assert read_sample(SOURCE, PlannedRange(topic="clicks", offsets=wanted(A, size), incarnation="7")) is None
    [[planned]] = reader.read.call_args.args
    assert planned.offsets == wanted(A, sampled)


@pytest.mark.parametrize(("fetch_bytes", "sample_bytes"), [(1000, 1000), (2**22, 2**16)])
def test_a_sample_is_one_small_fetch(fetch_bytes: int, sample_bytes: int) -> None:
    settings = replace(SOURCE.read_settings, sizes=FetchSizes(fetch_bytes=fetch_bytes))
    sampling = density._for_sample(replace(SOURCE, read_settings=settings)).read_settings
    assert (sampling.sizes.fetch_bytes, sampling.limits.batch_bytes) == (sample_bytes, sample_bytes)
    assert sampling.retry_policy.backoff.attempts == 1


def test_without_any_estimate_slices_are_cut_by_records() -> None:
    assert sizes_by_bytes(CAPS, [wanted(A, 5000)], {}, lambda _: None).target(A) == 1000
    assert sizes_by_bytes(CAPS, [], {}, never).target(A) == 1000


def no_spark() -> Any:
    pytest.fail("these loads fetch by themselves")


def large(count: int, size: int) -> Log:
    """A log of large records, two to a batch."""
    entries = [
        (
            offset + 1,
            bytes(
                record_batch([Record(offset=number, value=b"%d" % number * size) for number in (offset, offset + 1)])
            ),
        )
        for offset in range(0, count, 2)
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
            return loader_of(settings, cluster, no_spark, fetch=fetch).load("clicks")

    return run


def sizes_told(tmp_path: Path) -> list[int]:
    of_topic = table(tmp_path)
    [(_, entry), *_] = of_topic.entries(of_topic.snapshot())
    return [committed.offsets.stop - committed.offsets.start for committed in entry.ranges]


def test_a_first_load_of_large_records_is_cut_by_their_bytes(load: Callable[..., TopicLoad], tmp_path: Path) -> None:
    with FakeCluster(logs={0: large(40, 1000)}) as fake:
        result = load(fake)
    assert (result.error, result.rows) == (None, 40)
    assert max(sizes_told(tmp_path)) <= 10
    assert verify(table(tmp_path)).problems == ()


def test_the_next_load_uses_the_newest_commit_and_takes_no_sample(
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
    assert asked[0] == 1  # the last message of the table, by which the load recognises the log
    assert max(sizes_told(tmp_path)) <= 10


def test_a_sample_that_fails_leaves_the_error_to_the_load(load: Callable[..., TopicLoad], tmp_path: Path) -> None:
    with FakeCluster(logs={0: large(40, 1000)}) as fake:
        handlers = [broker.handlers[FETCH] for broker in fake.brokers]
        for broker in fake.brokers:
            broker.handlers[FETCH] = lambda _: CLOSE

        def healed(*args: Any) -> Any:
            for broker, handler in zip(fake.brokers, handlers, strict=True):
                broker.handlers[FETCH] = handler
            return fetch_here(*args)

        result = load(fake, healed)
        assert (result.error, result.rows) == (None, 40)
        assert sizes_told(tmp_path) == [40]


def test_a_sample_of_corrupt_records_is_not_a_failure_of_its_own(load: Callable[..., TopicLoad]) -> None:  # fault R01
    log = large(40, 1000)
    last, data = log.entries[0]
    log.entries[0] = (last, data[:-1] + bytes([data[-1] ^ 1]))
    with FakeCluster(logs={0: log, 1: large(10, 1000)}) as fake:
        result = load(fake)
    assert result.error is not None
    assert result.error.startswith("Corrupt")
    assert (result.retriable, result.rows) == (False, 10)
