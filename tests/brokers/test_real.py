"""Real brokers start, store records of a stock producer, serve them to another client, and stop."""

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
from tests.thorough import also

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


def new_chroot(version: str, mode: str, zookeeper_server: str) -> str | None:
    """A new chroot for a broker in ZooKeeper mode; None in KRaft mode."""
    return f"{zookeeper_server}/{uuid.uuid4().hex}/{version}" if mode == "zookeeper" else None


def read(broker: RealBroker, topic: str, partition: int = 0) -> list[tuple[bytes | None, bytes | None]]:
    """All records, read with kafka-python."""
    # Brokers before 0.10 do not answer ApiVersions.
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


def ends(pid: int) -> bool:
    """Whether the process ends within half a minute."""
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
    # The oldest and the newest version of each mode. Other tests start the versions in between.
    [("0.8.2.2", "zookeeper"), also("3.9.1", "zookeeper"), also("2.8.2", "kraft"), ("4.1.0", "kraft")],
)
def test_a_broker_stores_records_and_leaves_no_process_behind(
    version: str, mode: str, zookeeper_server: str, tmp_path: Path
) -> None:
    # To read lz4 of brokers before 0.10, kafka-python needs a further package, which is not installed.
    codecs = [codec for codec in RELEASES[version].codecs if not (codec == "lz4" and RELEASES[version].librdkafka)]
    with RealBroker(version, tmp_path, zookeeper=new_chroot(version, mode, zookeeper_server)) as broker:
        pid = broker.pid
        broker.create_topic("clicks", partitions=2)
        for codec in codecs:
            broker.produce("clicks", RECORDS, partition=1, codec=codec)
        assert read(broker, "clicks", 1) == RECORDS * len(codecs)
        assert read(broker, "clicks", 0) == []
    assert ends(pid)


@pytest.mark.parametrize(("version", "mode"), [also("0.9.0.1", "zookeeper"), ("3.9.1", "kraft")])
def test_a_killed_broker_still_has_its_records_after_a_restart(
    version: str, mode: str, zookeeper_server: str, tmp_path: Path
) -> None:
    with RealBroker(version, tmp_path, zookeeper=new_chroot(version, mode, zookeeper_server)) as broker:
        bootstrap = broker.bootstrap
        broker.create_topic("clicks")
        broker.produce("clicks", RECORDS)
        broker.kill()
        broker.start()
        assert broker.bootstrap == bootstrap
        assert read(broker, "clicks") == RECORDS


@pytest.mark.parametrize("version", ["0.8.2.2", "3.9.1"])
def test_a_deleted_topic_can_be_created_again_with_its_own_settings(
    version: str, brokers: Callable[[str], RealBroker]
) -> None:
    broker = brokers(version)
    broker.create_topic("recreated")
    broker.produce("recreated", RECORDS)
    broker.delete_topic("recreated")
    broker.create_topic("recreated", 3, {"max.message.bytes": "1000"})
    assert read(broker, "recreated") == []
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        broker.produce("recreated", [(None, os.urandom(2000))])


@pytest.mark.parametrize("version", ["3.9.1"])
def test_all_tests_of_a_session_share_one_broker_per_version(
    version: str, brokers: Callable[[str], RealBroker]
) -> None:
    assert brokers(version).pid == brokers(version).pid


@pytest.mark.parametrize("version", ["0.8.2.2"])
def test_a_codec_that_a_version_does_not_know_is_refused(version: str, brokers: Callable[[str], RealBroker]) -> None:
    with pytest.raises(ValueError, match=r"0\.8\.2\.2 does not know zstd"):
        brokers(version).produce("never", RECORDS, codec="zstd")


@pytest.mark.parametrize("version", ["0.8.2.2", "2.8.2"])
def test_the_error_of_a_broker_that_does_not_start_contains_the_end_of_its_log(
    version: str, zookeeper_server: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    config = {"log.dirs": str(tmp_path / "file")}
    broker = RealBroker(version, tmp_path, zookeeper=new_chroot(version, "zookeeper", zookeeper_server), config=config)
    with pytest.raises(
        BrokerNotStarted, match=rf"(?s)Kafka {version} ended.*The end of .*broker.log:\n.*{tmp_path}/file"
    ):
        broker.start()


def test_the_error_of_a_failed_format_contains_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(BrokerNotStarted, match=r"(?s)Kafka 3.9.1: .*The end of .*broker.log:\n.*no.such.number"):
        RealBroker("3.9.1", tmp_path, config={"num.partitions": "no such number"}).start()


def test_a_broker_ends_when_its_parent_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, str(tmp_path)]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root, process_group=0) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        assert ends(pid)
