"""Every generation through the same plan, fetch and commit: real brokers, real Spark, real Delta."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pipelines.loading.load import Loader, TopicLoad
from pipelines.loading.verify import verify
from resources.kafka import open_cluster
from resources.lake import Lake
from resources.settings import Caps, ClusterSettings, Settings
from resources.spark import open_session
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.releases import RELEASES

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

PARTITIONS = 2
Row = tuple[int, int, bytes | None, bytes | None]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    session = open_session({"master": "local[2,2]", "spark.ui.enabled": "false"})
    yield session
    session.stop()


@pytest.fixture
def topic() -> str:
    return f"loads-{uuid.uuid4().hex[:8]}"


class Lakeside:
    """A lake of one cluster, whose loads run in a session that all tests share."""

    def __init__(self, folder: Path, session: SparkSession, cluster: ClusterSettings) -> None:
        caps = Caps(slice_records=70, fetch_bytes=2000, attempts=4, request_timeout_s=10)
        self.settings = Settings(lake=str(folder / "lake"), clusters={"main": cluster}, caps=caps)
        self.lake = Lake.of(self.settings)
        self.session = session

    def load(self, topic: str) -> TopicLoad:
        """Load what is new."""
        with open_cluster(self.settings, "main") as cluster:
            return Loader.of(self.settings, cluster, lambda: self.session).load(topic)

    def table(self, topic: str) -> pa.Table:
        """What any reader of Delta sees; the ledger and the rows agree."""
        uri = self.lake.table_uri("main", topic)
        proof = verify(self.lake, topic, uri)
        assert proof.proven, proof.problems
        return DeltaTable(uri).to_pyarrow_table()

    def rows(self, topic: str) -> list[Row]:
        """Partition, offset, key and value of each row, in order."""
        names = ("partition", "offset", "key", "value")
        return sorted(zip(*(self.table(topic).column(name).to_pylist() for name in names), strict=True))


def found_through(broker: RealBroker, zookeeper_server: str) -> ClusterSettings:
    """By its registry where it has one."""
    if RELEASES[broker.version].modes[-1] == "zookeeper":
        return ClusterSettings(zookeeper=f"{zookeeper_server}/shared-{broker.version}")
    return ClusterSettings(bootstrap=broker.bootstrap)


def produce(broker: RealBroker, topic: str, codecs: tuple[str, ...], *, at: int = 0) -> list[Row]:
    """100 records of each codec into each partition; the rows that they should become."""
    rows = []
    for number, codec in enumerate(codecs):
        base = at + 100 * number
        for partition in range(PARTITIONS):
            records = [(b"key %d" % each, b"%d of " % each + codec.encode() * 9) for each in range(base, base + 100)]
            broker.produce(topic, records, partition=partition, codec=codec)
            rows += [(partition, base + each, key, value) for each, (key, value) in enumerate(records)]
    return sorted(rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_record_is_one_row_and_a_second_load_takes_only_what_is_new(
    version: str,
    brokers: Callable[[str], RealBroker],
    zookeeper_server: str,
    topic: str,
    tmp_path: Path,
    session: SparkSession,
) -> None:
    broker = brokers(version)
    codecs = RELEASES[version].codecs
    broker.create_topic(topic, PARTITIONS)
    lakeside = Lakeside(tmp_path, session, found_through(broker, zookeeper_server))
    expected = produce(broker, topic, codecs)
    first = lakeside.load(topic)
    assert (first.error, first.rows) == (None, len(expected))
    assert lakeside.rows(topic) == expected
    assert lakeside.load(topic).rows == 0
    expected += produce(broker, topic, codecs[:1], at=100 * len(codecs))
    second = lakeside.load(topic)
    assert (second.error, second.rows) == (None, 100 * PARTITIONS)
    assert lakeside.rows(topic) == sorted(expected)


# R10, B04
def test_transactions_are_loaded_when_they_are_committed_and_what_was_aborted_never(
    brokers: Callable[[str], RealBroker], topic: str, tmp_path: Path, session: SparkSession
) -> None:
    broker = brokers("4.1.0")
    broker.create_topic(topic)
    lakeside = Lakeside(tmp_path, session, ClusterSettings(bootstrap=broker.bootstrap))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    for value, ends in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, value, partition=0)
        producer.flush()  # else an abort forgets what was not sent yet
        ends()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    first = lakeside.load(topic)
    assert (first.error, first.rows) == (None, 3)
    [part] = first.partitions
    assert (part.end, dict(part.gaps)) == (8, {"aborted": 3, "control": 2})
    producer.commit_transaction()
    second = lakeside.load(topic)
    assert (second.error, second.rows) == (None, 1)
    assert [row[1:] for row in lakeside.rows(topic)] == [
        (0, None, b"kept"),
        (1, None, b"kept"),
        (2, None, b"kept"),
        (8, None, b"open"),
    ]


def test_nulls_headers_and_times_are_kept(
    brokers: Callable[[str], RealBroker], topic: str, tmp_path: Path, session: SparkSession
) -> None:
    broker = brokers("3.9.1")
    broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    headers = [("same", b"1"), ("same", None), ("other", b"")]
    producer.produce(topic, None, b"tombstone", 0, timestamp=1_700_000_000_123)
    producer.produce(topic, b"", None, 0, headers=headers, timestamp=1_700_000_000_456)  # type: ignore[arg-type] # a null value is allowed
    producer.flush()
    lakeside = Lakeside(tmp_path, session, ClusterSettings(bootstrap=broker.bootstrap))
    assert lakeside.load(topic).rows == 2
    first, second = lakeside.table(topic).sort_by("offset").to_pylist()
    assert (first["key"], first["value"], first["headers"]) == (b"tombstone", None, [])
    assert (second["key"], second["value"]) == (None, b"")
    assert [(one["key"], one["value"]) for one in second["headers"]] == headers
    assert [row["timestamp"].timestamp() for row in (first, second)] == [1_700_000_000.123, 1_700_000_000.456]
    assert {row["timestampType"] for row in (first, second)} == {0}
    assert {row["broker"] for row in (first, second)} == {None}


# B05, B06
def test_a_topic_that_was_deleted_and_made_anew_is_refused(
    brokers: Callable[[str], RealBroker], topic: str, tmp_path: Path, session: SparkSession
) -> None:
    broker = brokers("3.9.1")
    broker.create_topic(topic)
    broker.produce(topic, [(b"a", b"1")])
    lakeside = Lakeside(tmp_path, session, ClusterSettings(bootstrap=broker.bootstrap))
    assert lakeside.load(topic).rows == 1
    broker.delete_topic(topic)
    broker.create_topic(topic)
    broker.produce(topic, [(b"a", b"1"), (b"b", b"2")])
    error = lakeside.load(topic).error
    assert error is not None
    assert error.startswith("TopicRecreated")
    assert len(lakeside.rows(topic)) == 1


# R12: a compacted log has holes, and they are counted
def test_what_compaction_took_away_is_a_gap(topic: str, tmp_path: Path, session: SparkSession) -> None:
    eagerly = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.001"}
    with RealBroker("3.9.1", tmp_path / "broker", config=eagerly) as broker:
        broker.create_topic(topic, config={"cleanup.policy": "compact", "segment.bytes": "100000"})
        for _ in range(8):
            broker.produce(topic, [(b"same", b"value " * 200)] * 50)
        wait_for_compaction(broker, topic)
        lakeside = Lakeside(tmp_path, session, ClusterSettings(bootstrap=broker.bootstrap))
        assert lakeside.load(topic).error is None
        count = lakeside.table(topic).num_rows
        [part] = verify(lakeside.lake, topic, lakeside.lake.table_uri("main", topic)).partitions
        assert (part.start, part.end, count + part.gaps["compacted"]) == (0, 400, 400)
        assert count < 400


def wait_for_compaction(broker: RealBroker, topic: str) -> None:
    """Until the first record is gone."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            consumer.assign([TopicPartition(topic, 0, 0)])
            message = consumer.poll(10)
            if message is not None and not message.error() and message.offset():
                return
            consumer.unassign()
            time.sleep(0.2)
        pytest.fail("the broker did not compact its log")
    finally:
        consumer.close()
