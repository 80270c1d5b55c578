"""The real brokers: each boots, keeps what a stock producer writes and gives it to another client, and is gone."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from kafka import KafkaConsumer, TopicPartition

from tests.brokers.real import BrokerNotStarted, RealBroker
from tests.brokers.releases import RELEASES

pytestmark = pytest.mark.brokers

RECORDS = [(b"key %d" % number, b"value " * number) for number in range(1, 20)]
ALONE = """
import sys
from pathlib import Path
from tests.brokers.real import RealBroker
with RealBroker("3.9.1", Path(sys.argv[1])) as broker:
    print(broker.pid, flush=True)
    sys.stdin.read()
"""


def placed(version: str, mode: str, zookeeper_server: str) -> str | None:
    """Where a broker of the test's own keeps its cluster."""
    return f"{zookeeper_server}/{uuid.uuid4().hex}/{version}" if mode == "zookeeper" else None


def read(broker: RealBroker, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
    """All records, as kafka-python sees them."""
    # Brokers before 0.10 cannot be asked what they speak.
    settings = {"api_version": (0, int(broker.version[2]), 0)} if RELEASES[broker.version].librdkafka else {}
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, **settings)
    try:
        topic_partition = TopicPartition(topic, partition)
        consumer.assign([topic_partition])
        consumer.seek_to_beginning(topic_partition)
        (end,) = consumer.end_offsets([topic_partition]).values()
        records = []
        while consumer.position(topic_partition) < end:
            records += consumer.poll(1000).get(topic_partition, [])
        return [(record.key, record.value) for record in records]
    finally:
        consumer.close()


def is_gone(pid: int) -> bool:
    """The process ends within half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("version", "mode"),
    # Of each mode the oldest and the newest; those between boot for all the other tests here.
    [("0.8.2.2", "zookeeper"), ("3.9.1", "zookeeper"), ("2.8.2", "kraft"), ("4.1.0", "kraft")],
)
def test_it_keeps_what_it_is_given_and_leaves_no_process(
    version: str, mode: str, zookeeper_server: str, tmp_path: Path
) -> None:
    # kafka-python reads the lz4 of brokers before 0.10 only with a package that nothing else needs.
    codecs = [codec for codec in RELEASES[version].codecs if not (codec == "lz4" and RELEASES[version].librdkafka)]
    with RealBroker(version, tmp_path, zookeeper=placed(version, mode, zookeeper_server)) as broker:
        pid = broker.pid
        broker.create_topic("kept", partitions=2)
        for codec in codecs:
            broker.produce("kept", RECORDS, partition=1, codec=codec)
        assert read(broker, "kept", 1) == RECORDS * len(codecs)
        assert read(broker, "kept", 0) == []
    assert is_gone(pid)


@pytest.mark.parametrize(("version", "mode"), [("0.9.0.1", "zookeeper"), ("3.9.1", "kraft")])
def test_a_killed_one_comes_back_with_its_records(
    version: str, mode: str, zookeeper_server: str, tmp_path: Path
) -> None:
    with RealBroker(version, tmp_path, zookeeper=placed(version, mode, zookeeper_server)) as broker:
        bootstrap = broker.bootstrap
        broker.create_topic("kept")
        broker.produce("kept", RECORDS)
        broker.kill()
        broker.start()
        assert broker.bootstrap == bootstrap
        assert read(broker, "kept") == RECORDS


@pytest.mark.parametrize("version", ["0.8.2.2", "3.9.1"])
def test_a_deleted_topic_can_be_made_anew_with_settings_of_its_own(
    version: str, brokers: Callable[[str], RealBroker]
) -> None:
    broker = brokers(version)
    broker.create_topic("anew")
    broker.produce("anew", RECORDS)
    broker.delete_topic("anew")
    broker.create_topic("anew", 3, {"max.message.bytes": "1000"})
    assert read(broker, "anew") == []
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        broker.produce("anew", [(None, os.urandom(2000))])


@pytest.mark.parametrize("version", ["3.9.1"])
def test_it_is_shared_by_the_session(version: str, brokers: Callable[[str], RealBroker]) -> None:
    assert brokers(version).pid == brokers(version).pid


@pytest.mark.parametrize("version", ["0.8.2.2"])
def test_a_codec_that_a_version_does_not_know_is_refused(version: str, brokers: Callable[[str], RealBroker]) -> None:
    with pytest.raises(ValueError, match=r"0\.8\.2\.2 does not know zstd"):
        brokers(version).produce("never", RECORDS, codec="zstd")


@pytest.mark.parametrize("version", ["0.8.2.2", "2.8.2"])
def test_one_that_ends_leaves_its_last_words(version: str, zookeeper_server: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    config = {"log.dirs": str(tmp_path / "file")}
    broker = RealBroker(version, tmp_path, zookeeper=placed(version, "zookeeper", zookeeper_server), config=config)
    with pytest.raises(
        BrokerNotStarted, match=rf"(?s)Kafka {version} ended.*The end of .*broker.log:\n.*{tmp_path}/file"
    ):
        broker.start()


def test_one_that_cannot_be_formatted_leaves_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(BrokerNotStarted, match=r"(?s)Kafka 3.9.1: .*The end of .*broker.log:\n.*no.such.number"):
        RealBroker("3.9.1", tmp_path, config={"num.partitions": "no such number"}).start()


def test_a_killed_parent_leaves_no_broker_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, str(tmp_path)]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root, process_group=0) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        assert is_gone(pid)
