"""Two brokers: a leader that dies in the middle of a load is followed, and an upgrade that is half done is read."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_io.model import OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.records.decoded_batch import DecodeLimits
from resources.kafka import open_cluster
from tests.brokers.lakeside import CLUSTER, Lakeside
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.shared import SharedBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

FIRST, SECOND = 1, 2
RECORDS = [(b"key %d" % number, b"value " * (number % 40)) for number in range(2000)]
BATCH = 400


@contextmanager
def joined(there: SharedBroker, folder: Path, version: str, **config: str) -> Iterator[RealBroker]:
    """A second broker in the cluster of a shared one."""
    # Its session is short, so that it is missed soon.
    settings = {
        "zookeeper.session.timeout.ms": "1500",
        **{name.replace("_", "."): text for name, text in config.items()},
    }
    joins = None if there.zookeeper else there.broker
    with RealBroker(
        version, folder, zookeeper=there.zookeeper, broker_id=SECOND, config=settings, joins=joins
    ) as second:
        yield second


@contextmanager
def offsets_of(lakeside: Lakeside, topic: str) -> Iterator[Iterator[list[int]]]:
    """The offsets that a worker's reader gives of partition 0, a few at a time."""
    with open_cluster(lakeside.settings, CLUSTER) as cluster:
        entry = cluster.topic(topic)
        assert entry is not None
        [id_] = entry.partitions
        cluster.bounds(topic, [id_])
        source = cluster.source(id_)
    read_settings = replace(source.read_settings, limits=DecodeLimits(batch_bytes=10_000))
    planned_range = PlannedRange(topic=topic, offsets=OffsetRange(id_, 0, len(RECORDS)), incarnation=entry.incarnation)
    with closing(replace(source, read_settings=read_settings).open()) as reader:
        [batches] = reader.read([planned_range])
        yield (decoded.batch.column("offset").to_pylist() for decoded in batches)


# faults B01, B12
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.matrix("leader moves")
def test_a_leader_that_dies_in_the_middle_is_followed_without_a_gap_or_a_repeat(
    version: str, shared: Callable[[str], SharedBroker], topic: str, beside: Callable[..., Lakeside], tmp_path: Path
) -> None:
    there = shared(version)
    lakeside = beside(there.found(), attempts=20)
    with joined(there, tmp_path / "second", version) as second:
        there.broker.create_topic(topic, replicas=[[SECOND, FIRST]])
        for first in range(0, len(RECORDS), BATCH):
            there.broker.produce(topic, RECORDS[first : first + BATCH])
        with offsets_of(lakeside, topic) as read_offsets:
            offsets = next(read_offsets)
            assert 0 < len(offsets) < len(RECORDS)
            load = lakeside.load(topic, once_planned=second.kill)
            for more in read_offsets:
                offsets += more
        assert offsets == list(range(len(RECORDS)))
        assert (load.error, load.rows) == (None, len(RECORDS))
        assert lakeside.rows(topic) == read(there.broker, topic)


# faults B16, R28
@pytest.mark.parametrize(
    ("version", "newer", "speaks"),
    [("0.9.0.1", "0.10.2.2", "0.9.0"), ("1.1.1", "2.8.2", "1.1"), ("2.8.2", "3.9.1", "2.8")],
)
def test_a_cluster_in_the_middle_of_an_upgrade_is_read_from_both_versions(
    version: str,
    newer: str,
    speaks: str,
    shared: Callable[[str], SharedBroker],
    topic: str,
    beside: Callable[..., Lakeside],
    tmp_path: Path,
) -> None:
    there = shared(version)
    lakeside = beside(there.found())
    old = {"inter_broker_protocol_version": speaks, "log_message_format_version": speaks}
    with joined(there, tmp_path / "newer", newer, **old):
        there.broker.create_topic(topic, replicas=[[FIRST], [SECOND]])
        for partition in (0, 1):
            there.broker.produce(topic, RECORDS, partition=partition, codec="snappy")
        load = lakeside.load(topic)
        assert (load.error, load.rows) == (None, 2 * len(RECORDS))
        assert lakeside.rows(topic) == read(there.broker, topic, 2)
