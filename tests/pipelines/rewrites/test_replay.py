"""A replay fetches offsets again and replaces the table's rows by them; no cursor moves."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from deltalake import Field
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from kafka_io.messages.offset_for_leader_epoch import (
    LeaderEpochPartitionResponse,
    LeaderEpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka_io.model import BrokerPartition
from kafka_io.testing.v07.server import BrokerServer07
from pipelines.fetch.fetch_runner import FetchRunner, fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import CommitKind
from pipelines.ledger.slice_facts import SliceFacts
from resources import failpoints
from resources.progress import Progress
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.fakes.records import holding
from tests.kafka_io.testing.modern.talk import START_MS, Client
from tests.live import LiveCluster
from tests.pipelines.conftest import Modern
from tests.pipelines.loaded import Loaded

pytestmark = pytest.mark.slow  # each test fills a table and changes it

A = BrokerPartition(0, 0)
ONE = BrokerPartition(None, 0)


def iso(number: int) -> str:
    """The time of a numbered record."""
    return datetime.fromtimestamp(START_MS / 1000 + number, UTC).isoformat()


def repaired(topic: Loaded, rows: object) -> None:
    """Check that the table is proven, also against its brokers, and has these rows."""
    proof = topic.deep()
    assert proof.proven, proof.problems
    assert topic.rows() == rows
    assert topic.staged() == []


@pytest.mark.zookeeper
def test_a_replay_repairs_lost_and_damaged_rows_and_a_second_one_changes_nothing(old: Loaded) -> None:
    rows, cursor, offsets = old.rows(), old.covered(A), old.offsets(A)
    old.lose(A, offsets[2], offsets[-1])
    old.spoil(A, offsets[3])
    result = old.replay("earliest", "latest")
    assert (result.error, result.changed, result.rows) == (None, True, 600)
    assert result.partitions[0].comparison.differing.first == (offsets[3],)
    assert result.partitions[0].comparison.only_on_broker.first == (offsets[2], offsets[-1])
    assert all(partition.comparison.same for partition in result.partitions[1:])
    repaired(old, rows)
    assert (old.version, old.covered(A)) == (result.version, cursor)
    again = old.replay("earliest", "latest")
    assert (again.error, again.changed, again.version, old.version) == (None, False, result.version, result.version)
    assert old.staged() == []
    assert old.load().rows == 0


@pytest.mark.zookeeper
def test_the_middle_of_ranges_is_replayed_and_the_remaining_parts_still_count(old: Loaded) -> None:
    rows, offsets = old.rows(), old.offsets(A)
    start, stop = offsets[3], offsets[-3]
    old.lose(A, *offsets[4:6])
    result = old.replay(str(start), str(stop), "0-0")
    assert (result.error, result.changed) == (None, True)
    assert [(partition.offsets.start, partition.offsets.stop) for partition in result.partitions] == [(start, stop)]
    repaired(old, rows)
    snapshot = old.table.existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    assert snapshot.entry.kind is CommitKind.REPLAY
    assert {committed.partition for committed in snapshot.entry.ranges} == {A}
    assert not old.replay(str(start), str(stop), "0-0").changed
    assert old.load().rows == 0


@pytest.mark.zookeeper
def test_a_point_inside_a_message_of_0_7_takes_all_of_it(old: Loaded) -> None:
    rows, offsets = old.rows(), old.offsets(A)
    old.spoil(A, offsets[3])
    result = old.replay(str(offsets[3] + 1), str(offsets[4] - 1), "0-0")
    assert (result.error, result.changed) == (None, True)
    assert [(partition.offsets.start, partition.offsets.stop) for partition in result.partitions] == [
        (offsets[3], offsets[4])
    ]
    repaired(old, rows)


@pytest.mark.zookeeper
def test_several_slices_make_one_commit(old: Loaded) -> None:
    old.settings.write_text(old.settings.read_text().replace("slice_bytes = 16384", "slice_bytes = 4096"))
    rows, version = old.rows(), old.version
    old.spoil(A, *old.offsets(A))
    result = old.replay("earliest", "latest", "0-0")
    assert (result.error, result.version) == (None, version + 2)
    snapshot = old.table.existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    assert len(snapshot.entry.ranges) > 1
    repaired(old, rows)


def test_a_replay_of_expired_offsets_is_refused_before_anything_changes(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    modern.expire()
    earliest = modern.topic.deep().compared[0].offsets.start
    result = modern.topic.replay("earliest", "latest")
    assert result.error is not None
    assert f"ReplayRefused: the brokers no longer hold offsets [0, {earliest}): the log begins" in result.error
    assert (modern.topic.version, modern.topic.staged()) == (1, [])
    inner = modern.topic.replay(str(earliest - 5), "95", "0")
    assert f"no longer hold offsets [{earliest - 5}, {earliest})" in str(inner.error)
    assert modern.topic.replay(str(earliest), "latest", "0").error is None


def test_a_time_of_expired_records_is_not_taken_for_the_earliest_offset(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    modern.expire()
    earliest = modern.topic.deep().compared[0].offsets.start
    refused = modern.topic.replay(iso(earliest - 3), "latest")
    assert f"no longer hold offsets [{earliest - 3}, {earliest})" in str(refused.error)
    assert modern.topic.replay(iso(earliest), "latest").error is None


@pytest.mark.parametrize(("since", "until"), [("50", "101"), ("101", "102")])
def test_offsets_that_the_table_does_not_cover_are_refused(modern: Modern, since: str, until: str) -> None:
    modern.publish(100)
    modern.topic.load()
    modern.publish(100, first=100)
    result = modern.topic.replay(since, until, "0")
    assert "the table covers [0, 100), and offset 101 is outside of it" in str(result.error)
    assert (modern.topic.version, modern.topic.staged()) == (1, [])


def test_times_are_those_of_records_and_mean_what_is_covered(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    rows = modern.topic.rows("offset", "timestamp", "value", "headers")
    modern.publish(50, first=100)
    modern.topic.spoil(ONE, 41)
    result = modern.topic.replay(iso(40), iso(60))
    assert (result.error, result.changed, result.rows) == (None, True, 20)
    assert modern.topic.rows("offset", "timestamp", "value", "headers") == rows
    assert modern.topic.problems() == ()
    clipped = modern.topic.replay(iso(90), iso(140))
    assert [(partition.offsets.start, partition.offsets.stop) for partition in clipped.partitions] == [(90, 100)]
    none = modern.topic.replay(iso(120), iso(140))
    assert (none.error, none.changed, none.partitions) == (None, False, ())


def transact(modern: Modern) -> None:
    """Six transactions of ten records, of which every second is aborted."""
    producer = Producer({"bootstrap.servers": modern.address, "transactional.id": "t"})
    producer.init_transactions(20)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 3):
        producer.begin_transaction()
        for offset in range(10):
            producer.produce("clicks", value=b"%d-%d" % (number, offset), partition=0)
        producer.flush(20)
        end(20)


def test_aborted_and_control_records_are_the_same_gaps_again(modern: Modern) -> None:  # fault R22
    transact(modern)
    modern.topic.load()
    rows = modern.topic.rows()
    assert len(rows) == 30
    assert not modern.topic.replay("earliest", "latest").changed
    modern.topic.spoil(ONE, 0, 25)
    result = modern.topic.replay("5", "50", "0")
    assert (result.error, result.changed) == (None, True)
    assert result.partitions[0].gaps == {"aborted": 20, "control": 4}
    assert modern.topic.problems() == ()
    assert modern.topic.replay("earliest", "latest").changed
    repaired(modern.topic, rows)


def test_rows_that_a_log_lost_between_others_are_dropped_by_choice_only(modern: Modern) -> None:
    transact(modern)
    text = modern.topic.settings.read_text()
    modern.topic.settings.write_text(text.replace("[caps]", 'isolation = "uncommitted"\n[caps]'))
    modern.topic.load()
    modern.topic.settings.write_text(text)
    assert modern.topic.deep().proven  # it reads as the load did
    refused = modern.topic.replay("earliest", "latest")
    assert "the brokers no longer have 30 rows, at offsets 11, 12, 13, 14, 15, ... of partition 0" in str(refused.error)
    assert modern.topic.version == 1
    result = modern.topic.replay("earliest", "latest", on_compacted="drop")
    assert (result.error, result.changed, len(modern.topic.rows())) == (None, True, 30)
    snapshot = modern.topic.table.existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    assert list(map(str, snapshot.entry.choices)) == ["on_compacted = drop: partition 0 [0, 66)"]
    assert modern.topic.problems() == ()


def test_rows_that_were_lost_outside_of_the_interval_do_not_become_a_gap(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    rows = modern.topic.rows()
    modern.topic.lose(ONE, 3, 45)
    version = modern.topic.version
    result = modern.topic.replay("5", "10", "0")
    assert (
        "ReplayRefused: partition 0 [0, 25) holds 24 rows, but its commit counted 25, and rows are missing outside"
        in str(result.error)
    )
    assert modern.topic.version == version
    assert modern.topic.replay("40", "50", "0").changed
    assert [problem.partition(" holds")[0] for problem in modern.topic.problems()] == ["partition 0 [0, 25)"]
    assert modern.topic.replay("0", "25", "0").changed
    assert (modern.topic.problems(), modern.topic.rows()) == ((), rows)


@pytest.mark.zookeeper
def test_a_log_of_0_7_that_begins_later_is_refused_with_the_expired_range(live: LiveCluster, old: Loaded) -> None:
    version = old.version
    config = live.brokers[0].config
    live.brokers[0].stop()
    first, second, *_ = sorted((config.data_dir / "clicks-0").glob("*.kafka"))
    first.unlink()
    with BrokerServer07(config, zookeeper=live.zookeeper):
        result = old.replay("earliest", "latest", "0-0")
        compared = old.deep().compared[0]
    assert f"no longer hold offsets [0, {int(second.stem)}): the log begins" in str(result.error)
    assert (old.version, old.staged()) == (version, [])
    assert (compared.offsets.start, compared.not_compared) == (int(second.stem), int(second.stem))


@pytest.mark.zookeeper
def test_times_of_0_7_are_those_of_whole_segments(old: Loaded) -> None:
    result = old.replay("2020-01-01T00:00Z", "2100-01-01T00:00Z")
    assert (result.error, result.changed, result.rows) == (None, False, 600)


@pytest.mark.zookeeper
def test_a_partition_whose_broker_is_away_is_refused_and_the_others_can_be_replayed(
    live: LiveCluster, old: Loaded
) -> None:
    live.brokers[1].stop()
    assert "the broker is not registered" in str(old.replay("earliest", "latest").error)
    assert old.replay("earliest", "latest", "0-0", "0-1").error is None
    assert any("partition 1-0 was not compared with its broker" in problem for problem in old.deep().problems)


def test_a_replay_passes_its_failpoints_in_order(modern: Modern, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no crash test would end it there."""
    modern.publish(10)
    modern.topic.load()
    modern.topic.spoil(ONE, 5)
    monkeypatch.setenv(failpoints.KILL_AT, "raise:no failpoint")
    monkeypatch.setattr(failpoints, "_pass_counts", Counter())
    assert modern.topic.replay("earliest", "latest").changed
    passed = [name for name in failpoints._pass_counts if "replay" in name]
    assert passed == [
        "replay planned",
        "replay staged",
        "replay compared",
        "before replay entry",
        "after replay entry",
    ]


def test_a_slice_that_fails_fails_the_replay(modern: Modern) -> None:
    modern.publish(100)
    modern.topic.load()
    modern.topic.spoil(ONE, 5, 95)
    version = modern.topic.version

    def fetch(works: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
        facts = fetch_here(works, on_progress)
        return [*facts[:-1], replace(facts[-1], files=(), failure=SliceFailure(kind="LogShort", reason="it ends"))]

    result = modern.topic.replay("earliest", "latest", fetch=fetch)
    assert str(result.error).startswith("LogShort: it ends")
    assert (result.changed, modern.topic.version) == (False, version)
    assert len(modern.topic.staged()) == 4  # until housekeeping collects them


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("earliest", "latest", "7"), "ReplayRefused: the table holds nothing of this partition"),
        (("latest", "earliest"), "nothing is between"),
        (("5", "5", "0"), "nothing is between"),
        ((iso(5), iso(4)), "nothing is between"),
        (("5", "latest"), "an offset belongs to a single partition"),
        (("5", "latest", "0", "1"), "an offset belongs to a single partition"),
        (("soon", "latest"), "is not a position in a log"),
    ],
)
def test_requests_without_a_meaning_are_refused(modern: Modern, asked: tuple[str, ...], reason: str) -> None:
    modern.publish(10)
    modern.topic.load()
    try:
        message = str(modern.topic.replay(*asked).error)
    except ValueError as error:
        message = str(error)
    assert reason in message
    assert modern.topic.version == 1


def test_a_replay_creates_no_table(modern: Modern) -> None:
    assert "TableMissing: the topic has no table" in str(modern.topic.replay("earliest", "latest").error)
    assert not Path(modern.topic.table.uri).exists()


def test_a_recreated_topic_is_not_replayed_into_its_former_rows(modern: Modern) -> None:  # fault B06
    modern.publish(100)
    modern.topic.load()
    admin = AdminClient({"bootstrap.servers": modern.address})
    [deleted] = admin.delete_topics(["clicks"]).values()
    assert deleted.result(20) is None
    with Client(modern.server.port) as client:
        assert client.create("clicks") == 0
    modern.publish(100)
    assert "TopicRecreated: " in str(modern.topic.replay("earliest", "latest").error)
    [problem] = modern.topic.deep().problems
    assert problem.startswith("nothing was compared with the brokers: the topic is not the one that the table holds")


def test_rows_that_another_program_updated_stop_the_load_until_they_are_replayed(modern: Modern) -> None:  # fault A04
    modern.publish(100)
    modern.topic.load()
    modern.topic.update(ONE, 41)
    rows = modern.topic.rows()
    modern.publish(10, first=100)
    with modern.topic.loader() as loader:
        assert str(loader.load("clicks").error).startswith("TableNotProven: version 2 changed rows of the table")
    assert modern.topic.rows() == rows
    assert modern.topic.replay("40", "60", "0").changed
    [problem] = modern.topic.problems()
    assert problem.endswith("; it wrote rows of partition 0 [25, 40)")
    modern.topic.load()
    assert modern.topic.replay("earliest", "latest").changed  # the rows that are right are recorded as such
    assert modern.topic.problems() == ()
    assert not modern.topic.replay("earliest", "latest").changed


def test_a_replay_proves_rows_that_another_program_wrote_as_they_were(modern: Modern) -> None:  # fault A04
    modern.publish(20)
    modern.topic.load()
    modern.topic.handle.update(updates={"value": "value"}, predicate='"offset" = 3')
    assert modern.topic.problems()
    result = modern.topic.replay("earliest", "latest")
    assert (result.error, result.changed) == (None, True)
    assert result.partitions[0].comparison.same
    assert modern.topic.problems() == ()
    modern.topic.load()


def test_a_replay_fails_if_the_table_is_not_proven_after_it(modern: Modern) -> None:  # fault E05
    modern.publish(100)
    modern.topic.load()
    modern.topic.lose(ONE, 3, 45)
    result = modern.topic.replay("40", "50", "0")
    assert result.changed
    assert "TableNotProven: the replay has ended, and the table is still not proven: partition 0 [0, 25)" in str(
        result.error
    )
    assert modern.topic.replay("0", "25", "0").error is None


@pytest.mark.spark
def test_slices_may_be_fetched_by_spark(modern: Modern, spark: SparkSession) -> None:
    modern.publish(100)
    modern.topic.load()
    rows = modern.topic.rows()
    modern.topic.spoil(ONE, *range(10, 60))
    result = modern.topic.replay("earliest", "latest", fetch=FetchRunner(lambda: spark).fetch)
    assert (result.error, result.changed, result.partitions[0].comparison.differing.count) == (None, True, 50)
    repaired(modern.topic, rows)


def test_records_that_were_written_after_a_truncation_are_not_replayed(tmp_path: Path) -> None:  # fault G10
    epochs = OffsetForLeaderEpochRequest.API
    offered = {**EVERYTHING, epochs.key: epochs.versions}
    with FakeCluster(logs={0: holding(0, 20)}, offered=offered) as cluster:
        topic = Loaded(tmp_path / "penstock.toml")
        bootstrap = ",".join(broker.address for broker in cluster.bootstrap)
        topic.settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{bootstrap}"\n')
        topic.load()
        later = holding(10, 25, incarnation="second")
        cluster.logs[0] = Log(entries=[*holding(0, 10).entries, *later.entries], end=25, epoch=6)
        ended = LeaderEpochPartitionResponse(error_code=0, partition=0, leader_epoch=5, end_offset=10)
        answer = OffsetForLeaderEpochResponse(topics=(LeaderEpochTopicResponse(topic="clicks", partitions=(ended,)),))
        cluster.brokers[0].handlers[epochs.key] = lambda _: answer
        refused = topic.replay("5", "15", "0")
        assert str(refused.error).startswith("ReplayRefused: the log was truncated at 10")
        before = topic.replay("5", "10", "0")
        assert (before.error, before.changed) == (None, False)
    assert topic.rows("value") == [(f"first {number}".encode(),) for number in range(20)]


def loaded_from(cluster: FakeCluster, folder: Path) -> Loaded:
    """The topic of the cluster, loaded into a table in the folder."""
    topic = Loaded(folder / "penstock.toml")
    bootstrap = ",".join(broker.address for broker in cluster.bootstrap)
    topic.settings.write_text(f'lake = "{folder / "lake"}"\n[clusters.main]\nbootstrap = "{bootstrap}"\n')
    topic.load()
    return topic


def test_rows_of_a_log_that_is_created_again_during_the_replay_are_not_committed(tmp_path: Path) -> None:
    """Nothing is new in the log, but its rows are read (fault P11)."""
    with FakeCluster(logs={0: holding(0, 20, epoch=-1)}) as cluster:
        topic = loaded_from(cluster, tmp_path)
        topic.spoil(ONE, 5)

        def fetch(tasks: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
            cluster.logs[0] = holding(0, 20, incarnation="second", epoch=-1)
            return fetch_here(tasks, on_progress)

        version = topic.version
        refused = topic.replay("5", "10", "0", fetch=fetch)
        assert str(refused.error).startswith("TopicRecreated: the log of partition 0 has another message at offset 19")
        assert topic.version == version


def test_a_topic_that_the_cluster_does_not_have_is_not_replayed(tmp_path: Path) -> None:
    with FakeCluster(logs={0: holding(0, 20)}) as cluster:
        topic = loaded_from(cluster, tmp_path)
        cluster.topic = "views"
        assert str(topic.replay("earliest", "latest").error).startswith("TopicUnknown: the cluster has no such topic")


def test_the_progress_of_a_replay_counts_offsets(tmp_path: Path) -> None:
    reported: list[tuple[int, int]] = []
    with FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)}, topic_id=UUID(int=7)) as cluster:
        topic = loaded_from(cluster, tmp_path)
        topic.replay("earliest", "latest", on_progress=lambda done, of: reported.append((done, of)))
    assert reported == [(15, 30), (30, 30)]


def test_a_replay_of_several_partitions_repairs_damaged_files(tmp_path: Path) -> None:  # fault N09
    with FakeCluster(logs={0: holding(0, 20), 1: holding(0, 10)}, topic_id=UUID(int=7)) as cluster:
        topic = loaded_from(cluster, tmp_path)
        for file in Path(topic.table.uri).glob("date=*/*.parquet"):
            file.unlink()
        assert topic.replay("earliest", "latest").error is None
    assert len(topic.rows()) == 30


def test_a_column_of_another_program_does_not_keep_a_replay_from_landing(modern: Modern) -> None:  # fault N16
    modern.publish(40)
    modern.topic.load()
    rows = modern.topic.rows()
    modern.topic.handle.alter.add_columns([Field("theirs", PrimitiveType("string"))])
    modern.topic.lose(ONE, 3)
    result = modern.topic.replay("earliest", "latest")
    assert (result.error, result.changed) == (None, True)
    assert (modern.topic.rows(), modern.topic.problems()) == (rows, ())
    modern.publish(10, first=40)
    assert modern.topic.load().rows == 10


HARMS = {"lost": Path.unlink, "cut": lambda file: file.write_bytes(file.read_bytes()[:-1])}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_replay_repairs_a_table_with_a_damaged_data_file(harm: Callable[[Path], object], modern: Modern) -> None:
    """See fault N09."""
    modern.publish(100)
    topic = modern.topic
    topic.load()
    rows = topic.rows()
    file = sorted(Path(topic.table.uri).glob("date=*/*.parquet"))[1]
    harm(file)
    deep = topic.deep()
    assert any("is missing or truncated" in problem and "`penstock replay" in problem for problem in deep.problems)
    assert deep.compared[0].comparison.equal == 75
    version = topic.version
    refused = topic.replay("0", "10", "0")
    assert "is lost or damaged, and with it rows of partition 0 [25, 50): replay all of it" in str(refused.error)
    assert topic.version == version
    result = topic.replay("earliest", "latest")
    assert (result.error, result.changed) == (None, True)
    assert (topic.rows(), topic.problems(), topic.deep().proven) == (rows, (), True)
