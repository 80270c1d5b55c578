"""Loads from clusters of two brokers: the leader is killed during a load, or a rolling upgrade is in progress."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_io.model import OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.records.decoded_batch import DecodeLimits
from resources.kafka import open_cluster
from tests.brokers.broker_lake import CLUSTER, BrokerLake
from tests.brokers.metadata import request_metadata
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.shared import SharedBroker
from tests.thorough import also

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

FIRST, SECOND = 1, 2
RECORDS = [(b"key %d" % number, b"value " * (number % 40)) for number in range(2000)]
PRODUCED_AT_ONCE = 400
_GONE_S = 60


@contextmanager
def joined(shared_broker: SharedBroker, folder: Path, version: str, **config: str) -> Iterator[RealBroker]:
    """Run a second broker in the cluster of a shared broker.

    At the end the cluster no longer lists this broker: clients of later tests would try to connect to it.
    """
    # A short session, so that the cluster soon notices when this broker is killed.
    settings = {
        "zookeeper.session.timeout.ms": "1500",
        **{name.replace("_", "."): text for name, text in config.items()},
    }
    joins = None if shared_broker.zookeeper else shared_broker.broker.quorum
    with RealBroker(
        version, folder, zookeeper=shared_broker.zookeeper, broker_id=SECOND, config=settings, joins=joins
    ) as second:
        yield second
    first, deadline = shared_broker.broker, time.monotonic() + _GONE_S
    while SECOND in request_metadata(first.host, first.port).brokers:
        assert time.monotonic() < deadline, f"the cluster still lists broker {SECOND} after {_GONE_S} s"
        time.sleep(0.1)


@contextmanager
def read_offsets_of(lake: BrokerLake, topic: str) -> Iterator[Iterator[list[int]]]:
    """The offsets that a worker's reader returns for partition 0, in small batches."""
    with open_cluster(lake.settings, CLUSTER) as cluster:
        entry = cluster.topic(topic)
        assert entry is not None
        [partition] = entry.partitions
        cluster.bounds(topic, [partition])
        source = cluster.source(partition)
    read_settings = replace(source.read_settings, limits=DecodeLimits(batch_bytes=10_000))
    planned_range = PlannedRange(
        topic=topic, offsets=OffsetRange(partition, 0, len(RECORDS)), incarnation=entry.incarnation
    )
    with closing(replace(source, read_settings=read_settings).open()) as reader:
        [batches] = reader.read([planned_range])
        yield (decoded.batch.column("offset").to_pylist() for decoded in batches)


# faults B01, B12
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.matrix("leader moves")
def test_a_leader_killed_during_a_read_causes_no_gap_and_no_duplicate(
    version: str,
    shared: Callable[[str], SharedBroker],
    topic: str,
    open_lake: Callable[..., BrokerLake],
    tmp_path: Path,
) -> None:
    shared_broker = shared(version)
    lake = open_lake(shared_broker.cluster_settings(), attempts=20)
    with joined(shared_broker, tmp_path / "second", version) as second:
        shared_broker.broker.create_topic(topic, replicas=[[SECOND, FIRST]])
        for first in range(0, len(RECORDS), PRODUCED_AT_ONCE):
            shared_broker.broker.produce(topic, RECORDS[first : first + PRODUCED_AT_ONCE])
        with read_offsets_of(lake, topic) as read_offsets:
            offsets = next(read_offsets)
            assert 0 < len(offsets) < len(RECORDS)
            load = lake.load(topic, once_planned=second.kill)
            for next_offsets in read_offsets:
                offsets += next_offsets
        assert offsets == list(range(len(RECORDS)))
        assert (load.error, load.rows) == (None, len(RECORDS))
        assert lake.rows(topic) == read(shared_broker.broker, topic)


# faults B16, R28
@pytest.mark.parametrize(
    ("version", "newer", "protocol"),
    [("0.9.0.1", "0.10.2.2", "0.9.0"), also("1.1.1", "2.8.2", "1.1"), also("2.8.2", "3.9.1", "2.8")],
)
def test_a_cluster_during_a_rolling_upgrade_is_loaded_from_brokers_of_both_versions(
    version: str,
    newer: str,
    protocol: str,
    shared: Callable[[str], SharedBroker],
    topic: str,
    open_lake: Callable[..., BrokerLake],
    tmp_path: Path,
) -> None:
    shared_broker = shared(version)
    lake = open_lake(shared_broker.cluster_settings())
    old_protocol = {"inter_broker_protocol_version": protocol, "log_message_format_version": protocol}
    with joined(shared_broker, tmp_path / "newer", newer, **old_protocol):
        shared_broker.broker.create_topic(topic, replicas=[[FIRST], [SECOND]])
        for partition in (0, 1):
            shared_broker.broker.produce(topic, RECORDS, partition=partition, codec="snappy")
        load = lake.load(topic)
        assert (load.error, load.rows) == (None, 2 * len(RECORDS))
        assert lake.rows(topic) == read(shared_broker.broker, topic, 2)
