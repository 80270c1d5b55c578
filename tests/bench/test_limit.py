"""The limit receives the same answers and writes the same rows as ours; tested with an embedded broker."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from kafka_io import Message, ProducerSettings, Queueing, open_producer
from kafka_io.cluster.modern_cluster import ModernCluster
from kafka_io.compression import CODECS
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.fetch import slice_file
from resources.stores import durable
from tests.bench import event_times, last_messages, limit
from tests.bench.cases import PARTITIONS, Job
from tests.bench.comparison import Timer
from tests.bench.files import Content
from tests.bench.recording import timed_inside

RECORDS = 4_000
VALUE = b"a value of some bytes"


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A topic of compressed records."""
    config = ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker", partitions=PARTITIONS)
    with ModernBrokerServer(config) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        with open_producer(
            bootstrap=bootstrap,
            settings=ProducerSettings(compression="zstd"),
            queue=Queueing(batch_size=100, queue_size=RECORDS),
        ) as producer:
            futures = producer.send_many(Message(topic="events", value=VALUE) for _ in range(RECORDS))
            producer.flush()
        assert len(list(futures)) == RECORDS
        folder = tmp_path / "loaded"
        folder.mkdir()
        yield Job(bootstrap=bootstrap, topic="events", records=RECORDS, folder=folder, warm_up="events", jars="")


def test_ours_and_the_limit_both_write_all_records_of_the_topic(job: Job) -> None:
    compared = limit.measure(job, passes=2)
    assert compared.pairs == 2 * PARTITIONS
    assert compared.records == 2 * RECORDS
    for written_by in (limit.OURS, limit.LIMIT):
        written = Content.of(job.folder / written_by)
        assert (written.rows, written.values_bytes) == (RECORDS, RECORDS * len(VALUE))


def test_the_cost_of_last_messages_is_a_part_of_a_load_of_all_records(job: Job) -> None:
    with patch.object(ModernCluster, "last_messages", autospec=True, side_effect=ModernCluster.last_messages) as asked:
        cost = last_messages.measure(job)
    assert 0 < cost.compare_cpu_s < cost.load_cpu_s
    assert asked.call_count == 4  # two loads compare, each before it plans and after it has fetched
    assert Content.of(job.folder).rows == RECORDS


def test_the_cost_of_event_time_is_a_part_of_a_load_of_all_records(job: Job) -> None:
    cost = event_times.measure(job)
    assert 0 < cost.times_cpu_s < cost.load_cpu_s
    assert Content.of(job.folder).rows == RECORDS


def test_the_limit_needs_less_time_than_ours(job: Job) -> None:
    compared = limit.measure(job, passes=2)
    assert 0 < compared.inside_cpu_s < compared.ours_cpu_s
    assert 0 < compared.limit_cpu_s < compared.ours_cpu_s


def test_removed_timers_leave_the_product_unchanged() -> None:
    def timed() -> tuple[object, ...]:
        return CODECS[4].decompress_into, slice_file.SliceFile.flush, durable.sync_below

    before = timed()
    with timed_inside(Timer()):
        assert not any(inside is outside for inside, outside in zip(timed(), before, strict=True))
    assert timed() == before
