"""A corrupt or too large batch stops a load at its exact offset, and by choice the load continues after it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock, patch

import pytest

from kafka_io.cluster.cluster import Cluster
from kafka_io.errors import ConnectFailed, Corrupt, LocatedError, Where
from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.reader.unreadable import UnreadableRange
from kafka_io.records.build import Record, log_messages, record_batch
from pipelines.comparison.deep_verify import deep_verify
from pipelines.fetch.fetch_runner import fetch_here
from pipelines.fetch.unreadable import readable_batches
from pipelines.ledger.ledger import LedgerEntry
from pipelines.maintenance.clean import clean
from pipelines.reports.outcome import TopicLoad
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.settings.choices import Choices
from resources.settings.settings import Caps, ClusterSettings, Settings
from resources.stores import durable
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import loader_of
from tests.fakes.records import holding, numbered, table, values
from tests.fakes.typed import TypedTopic, append, log_of

A = BrokerPartition(None, 0)
LENGTH, CRC_COVERED = 8, -1


def flipped(log: Log, number: int, byte: int = CRC_COVERED, bit: int = 1) -> Log:
    """The log with a flipped bit in the entry of this number."""
    last, data = log.entries[number]
    damaged = bytearray(data)
    damaged[byte] ^= bit
    log.entries[number] = (last, bytes(damaged))
    return log


def no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def failing(error: LocatedError) -> Iterator[NoReturn]:
    """The batches of a read that fails at once."""
    yield from ()
    raise error


PLANNED = PlannedRange(topic="clicks", offsets=OffsetRange(A, 5, 10), incarnation="7")


def test_an_error_that_is_about_no_record_is_not_taken_for_a_damaged_one() -> None:
    reader, skip = Mock(), Mock()
    with pytest.raises(ConnectFailed):
        list(readable_batches(reader, PLANNED, failing(ConnectFailed("away")), skip))
    assert (reader.mock_calls, skip.mock_calls) == ([], [])


def test_nothing_is_read_after_a_damaged_end() -> None:
    reader = Mock(unreadable=Mock(return_value=UnreadableRange(start=5, stop=10)))
    corrupt = failing(Corrupt("wrong CRC", Where(offset=5)))
    [batch] = readable_batches(reader, PLANNED, corrupt, lambda _, damaged: f"corrupt to {damaged.stop}")
    assert (batch.next_offset, batch.gaps, batch.batch.num_rows) == (10, {"corrupt to 10": 5}, 0)
    assert not reader.read.called


def settings_of(fake: FakeCluster, folder: Path, caps: dict[str, Any] | None = None, **chosen: str) -> Settings:
    bootstrap = ",".join(broker.address for broker in fake.bootstrap)
    return Settings(
        lake=str(folder),
        clusters={"main": ClusterSettings(bootstrap=bootstrap)},
        caps=Caps(attempts=1, request_timeout_s=5, **(caps or {})),
        choices=Choices.model_validate(chosen),
    )


def opened(fake: FakeCluster, folder: Path) -> Cluster:
    return open_cluster(settings_of(fake, folder), "main")


def load(fake: FakeCluster, folder: Path, caps: dict[str, Any] | None = None, **chosen: str) -> TopicLoad:
    settings = settings_of(fake, folder, caps, **chosen)
    with open_cluster(settings, "main") as cluster:
        return loader_of(settings, cluster, no_spark, fetch=fetch_here).load("clicks")


def newest(folder: Path) -> LedgerEntry:
    entry = table(folder).snapshot().entry
    assert entry is not None
    return entry


def kept(folder: Path) -> dict[str, bytes]:
    """The files of the quarantine, by the start of their names."""
    root = Path(table(folder).uri)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("_quarantine/*")}


# fault N03
def test_the_records_before_a_corrupt_batch_are_loaded_and_the_error_has_its_offset(
    fake: FakeCluster, tmp_path: Path
) -> None:
    fake.logs[0] = flipped(fake.logs[0], 2)
    with fake:
        result = load(fake, tmp_path)
        assert result.error is not None
        assert result.error.startswith("Corrupt: wrong CRC")
        assert '; set on_corrupt = "skip" to continue at offset 15' in result.error
        assert result.error.endswith("topic=clicks partition=0 offset=10] (PS-307)")
        assert values(tmp_path) == numbered(0, 10)
        assert newest(tmp_path).covered == {A: (0, 10), BrokerPartition(None, 1): (0, 10)}
        assert verify(table(tmp_path)).problems == ()
        again = load(fake, tmp_path)
        assert (again.rows, again.error) == (0, result.error)
        fake.logs[0] = holding(0, 20)
        assert load(fake, tmp_path).error is None
    assert values(tmp_path) == numbered(0, 20)
    assert verify(table(tmp_path)).problems == ()


# fault N03
def test_a_deep_verify_leaves_out_what_was_skipped_and_finds_what_became_unreadable_later(
    fake: FakeCluster, tmp_path: Path
) -> None:
    whole = fake.logs[0].entries[2]
    fake.logs[0] = flipped(fake.logs[0], 2)
    with fake:
        load(fake, tmp_path, on_corrupt="skip")
        with opened(fake, tmp_path) as cluster:
            proof = deep_verify(table(tmp_path), cluster)
            assert proof.problems == ()
            assert [partition.not_compared for partition in proof.compared] == [5, 0]
            assert [partition.comparison.equal for partition in proof.compared] == [15, 10]
            fake.logs[0].entries[2] = whole
            assert deep_verify(table(tmp_path), cluster).problems == ()
            fake.logs[0] = flipped(fake.logs[0], 0)
            [problem] = deep_verify(table(tmp_path), cluster).problems
    assert problem.startswith("partition 0 was not compared with its broker: wrong CRC")


# fault E12
def test_a_slice_that_is_fetched_twice_keeps_skipped_bytes_once_and_clean_knows_the_others(
    fake: FakeCluster, tmp_path: Path
) -> None:
    fake.logs = {0: flipped(log_of([b'{"id": 1}'] * 3), 0)}
    append(fake.logs[0], [b'{"id": 2}'])
    with fake:
        typed = TypedTopic(fake=fake, folder=tmp_path, format_={"format": "json"}).settings
        settings = typed.model_copy(update={"choices": Choices(on_corrupt="skip")})
        with open_cluster(settings, "main") as cluster:
            result = loader_of(settings, cluster, no_spark, fetch=fetch_here).load("clicks")
        assert (result.error, result.rows) == (None, 1)
    [choice] = newest(tmp_path).choices
    assert list(kept(tmp_path)) == [choice.path]
    Path(table(tmp_path).uri, "_quarantine", "of a failed load.bytes").write_bytes(b"x")
    cleaned = clean(table(tmp_path), keep=timedelta(0), target_bytes=2**20, dry_run=False)
    assert cleaned.collected == ("_quarantine/of a failed load.bytes",)
    assert list(kept(tmp_path)) == [choice.path]


# faults L10, N03
def test_the_kept_bytes_are_forced_to_disk_before_the_commit_names_them(fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs[0] = flipped(fake.logs[0], 2)
    with fake, patch.object(durable, "sync", wraps=durable.sync) as sync:
        assert load(fake, tmp_path, on_corrupt="skip").error is None
    [choice] = newest(tmp_path).choices
    assert choice.path
    kept_file = Path(table(tmp_path).uri, choice.path)
    synced = [call.args[0] for call in sync.call_args_list]
    [entry] = [path for path in synced if path.name == f"{1:020d}.json"]
    assert synced.index(kept_file) < synced.index(kept_file.parent) < synced.index(entry)


# fault N03
def test_a_corrupt_batch_is_skipped_by_choice_with_a_receipt_and_its_bytes(fake: FakeCluster, tmp_path: Path) -> None:
    fake.logs[0] = flipped(fake.logs[0], 2)
    with fake:
        result = load(fake, tmp_path, on_corrupt="skip")
    assert (result.error, result.rows) == (None, 25)
    assert values(tmp_path) == [*numbered(0, 10), *numbered(15, 20)]
    [choice] = newest(tmp_path).choices
    assert (choice.setting, choice.value, choice.partition) == ("on_corrupt", "skip", "0")
    assert (choice.start, choice.stop) == (10, 15)
    assert choice.reason.startswith("wrong CRC")
    assert kept(tmp_path) == {choice.path: fake.logs[0].entries[2][1]}
    assert [str(choice)] == list(result.warnings)
    assert {committed.offsets.partition: committed.gaps for committed in newest(tmp_path).ranges}[A] == {"corrupt": 5}
    assert verify(table(tmp_path)).problems == ()
    before = kept(tmp_path)
    clean(table(tmp_path), keep=timedelta(0), target_bytes=2**20, dry_run=False)
    assert kept(tmp_path) == before


def test_each_of_several_corrupt_batches_has_its_receipt(fake: FakeCluster, tmp_path: Path) -> None:
    for number in (0, 2, 3):
        flipped(fake.logs[0], number)
    with fake:
        result = load(fake, tmp_path, on_corrupt="skip")
    assert (result.error, values(tmp_path)) == (None, numbered(5, 10))
    assert [(choice.start, choice.stop) for choice in newest(tmp_path).choices] == [(0, 5), (10, 15), (15, 20)]
    assert sorted(kept(tmp_path).values()) == sorted(fake.logs[0].entries[number][1] for number in (0, 2, 3))
    assert verify(table(tmp_path)).problems == ()


@pytest.mark.parametrize("slice_records", [3, 7])
def test_a_corrupt_batch_may_reach_into_the_next_slice(fake: FakeCluster, tmp_path: Path, slice_records: int) -> None:
    flipped(fake.logs[0], 1)
    with fake:
        result = load(fake, tmp_path, {"slice_records": slice_records}, on_corrupt="skip")
    assert result.error is None
    assert values(tmp_path) == [*numbered(0, 5), *numbered(10, 20)]
    assert sum(committed.gaps.get("corrupt", 0) for committed in newest(tmp_path).ranges) == 5
    assert verify(table(tmp_path)).problems == ()


# The broker looks for an offset by these fields of the headers; here it knows where each batch really is.
@pytest.mark.parametrize(("byte", "bit"), [(LENGTH, 0x40), (LENGTH + 3, 1), (16, 0x40), (26, 1), (26, 0x20), (7, 1)])
def test_a_batch_with_a_damaged_header_is_skipped_up_to_the_next_that_the_broker_can_give(
    fake: FakeCluster, tmp_path: Path, byte: int, bit: int
) -> None:
    flipped(fake.logs[0], 2, byte, bit)
    flipped(fake.logs[0], 2)
    with fake:
        result = load(fake, tmp_path, on_corrupt="skip", on_too_large="skip")
    assert result.error is None
    assert values(tmp_path) == [*numbered(0, 10), *numbered(15, 20)]
    assert verify(table(tmp_path)).problems == ()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_corrupt_messages_of_older_formats_are_skipped(
    fake: FakeCluster, tmp_path: Path, magic: int, codec: int
) -> None:
    groups = [
        [Record(offset=offset, value=f"first {offset}".encode()) for offset in (n, n + 1)] for n in range(0, 12, 2)
    ]
    entries = [(group[-1].offset, log_messages(group, magic=magic, codec=codec)) for group in groups]
    fake.logs = {0: flipped(Log(entries=entries, end=12), 3)}
    with fake:
        failed = load(fake, tmp_path)
        lost = [6, 7] if codec else [7]
        assert (failed.error or "").endswith(f"offset={lost[0]}] (PS-307)")
        assert values(tmp_path) == numbered(0, lost[0])
        assert load(fake, tmp_path, on_corrupt="skip").error is None
    assert values(tmp_path) == [*numbered(0, lost[0]), *numbered(8, 12)]


# fault N04
def test_the_records_before_a_too_large_batch_are_loaded_and_the_error_names_the_limit(
    fake: FakeCluster, tmp_path: Path
) -> None:
    large = record_batch([Record(offset=offset, value=b"x" * 1_000_000) for offset in (10, 11, 12)])
    after = holding(13, 20).entries
    fake.logs[0] = Log(entries=[*holding(0, 10).entries, (12, large), *after], end=20)
    caps = {"fetch_bytes": 4096, "max_fetch_bytes": 1_000_000}
    with fake:
        result = load(fake, tmp_path, caps)
        assert result.error is not None
        assert result.error.startswith("TooLarge: a batch is above max_fetch_bytes = 1000000: a frame of 3000")
        assert 'raise that limit in [caps], or set on_too_large = "skip" to continue at offset 13' in result.error
        assert result.error.endswith("partition=0 offset=10] (PS-308)")
        assert values(tmp_path) == numbered(0, 10)
        skipped = load(fake, tmp_path, caps, on_too_large="skip")
        assert (skipped.error, skipped.rows) == (None, 7)
    assert values(tmp_path) == [*numbered(0, 10), *numbered(13, 20)]
    [choice] = newest(tmp_path).choices
    assert (choice.setting, choice.start, choice.stop, choice.path) == ("on_too_large", 10, 13, None)
    assert verify(table(tmp_path)).problems == ()


def test_a_batch_that_is_too_large_after_decompression_is_kept_as_it_was_sent(
    fake: FakeCluster, tmp_path: Path
) -> None:
    bomb = record_batch([Record(offset=10, value=b"x" * 2_000_000)], codec=1)
    fake.logs[0] = Log(entries=[*holding(0, 10).entries, (10, bomb), *holding(11, 20).entries], end=20)
    with fake:
        result = load(fake, tmp_path, {"max_decompressed_bytes": 1_000_000}, on_too_large="skip")
    assert (result.error, values(tmp_path)) == (None, [*numbered(0, 10), *numbered(11, 20)])
    assert list(kept(tmp_path).values()) == [bomb]


def test_a_batch_that_is_corrupt_only_once_is_loaded(fake: FakeCluster, tmp_path: Path) -> None:
    whole = list(fake.logs[0].entries)
    fake.logs[0] = flipped(fake.logs[0], 2)
    with fake:
        usual = fake.brokers[0].handlers[1]

        def once(received: Any) -> Any:
            answer = usual(received)
            fake.logs[0].entries = whole
            return answer

        fake.brokers[0].handlers[1] = once
        assert load(fake, tmp_path).error is None
    assert values(tmp_path) == numbered(0, 20)
    assert kept(tmp_path) == {}
