"""The incidents of docs/incidents.md: how each of them happens, with genuine servers as far as they can do it.

Each incident begins with ten records in the table. What a step of the page leaves to the operator ends a fault.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

from deltalake import DeltaTable

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.messages.delete_topics import DeleteTopicsRequest
from kafka_io.messages.list_offsets import EARLIEST_TIME
from kafka_io.model import Generation
from kafka_io.producer.opening import open_producer
from kafka_io.producer.settings import ProducerSettings
from kafka_io.testing.modern.log.header import whole_batches
from tests.fakes.cluster import FakeCluster
from tests.fakes.object_store import object_store
from tests.fakes.records import holding
from tests.incidents.world import TOPIC, IncidentWorld

HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """An incident of a section.

    Args:
        section: the title of the section.
        happen: lets it happen.
        sights: the numbers of the blocks below "What you see" that show it.
        rows: how many rows the table has in the end.
        lost: how many offsets of the log have no row in the end; the page says what they cost.
    """

    section: str
    happen: Callable[[IncidentWorld], None]
    sights: tuple[int, ...] = (0,)
    rows: int
    lost: int = 0


def numbers(start: int, stop: int) -> list[bytes]:
    """Values with the numbers `[start, stop)`."""
    return [b'{"number": %d}' % number for number in range(start, stop)]


def loaded(world: IncidentWorld, count: int = 10) -> None:
    """Load the first records."""
    world.publish(numbers(0, count))
    world.load()


def batch_positions(world: IncidentWorld) -> list[tuple[int, int]]:
    """Where each batch of the log file begins and ends."""
    data = memoryview(world.log_file.read_bytes())
    return [(position, position + header.size) for position, header in whole_batches(data)]


def a_transaction_hangs(world: IncidentWorld) -> None:
    """A producer begins a transaction and sends nothing more; records of others follow."""
    loaded(world)
    retry_policy = RetryPolicy(timeout_s=300)
    settings = ProducerSettings(transactional_id="t", transaction_timeout_ms=900_000, retry_policy=retry_policy)
    producer = world.run(open_producer(bootstrap=world.settings["clusters"]["main"]["bootstrap"], settings=settings))
    producer.begin()
    producer.send(TOPIC, b"never committed", timestamp_ms=int((time.time() - 1.5 * HOUR_S) * 1000))
    producer.flush()
    world.begin_fault(repair=producer.abort)
    world.publish(numbers(10, 30))


def retention_is_too_short(world: IncidentWorld) -> None:
    """Retention deletes old records that were not loaded, and would delete more of them."""
    world.publish(numbers(0, 10), age_s=2 * HOUR_S)
    world.load()
    world.publish(numbers(10, 20), age_s=2 * HOUR_S)
    expire(world, 20)
    world.begin_fault(repair=world.restart)
    world.publish(numbers(20, 25))


def expire(world: IncidentWorld, end: int) -> None:
    """Let retention delete the records before an offset, which are all two hours old."""
    world.restart(retention_ms=HOUR_S * 1000, retention_check_ms=0, flush_interval_ms=5)
    with world.client() as client:
        while client.offset_at(TOPIC, EARLIEST_TIME) != (0, end):
            time.sleep(0.01)


def the_topic_is_created_again(world: IncidentWorld) -> None:
    """The topic is deleted and created again, with other records."""
    loaded(world)
    with world.client() as client:
        client.ask(DeleteTopicsRequest(topic_names=(TOPIC,), timeout_ms=1000), 5)
        assert client.create(TOPIC) == 0
    world.publish(numbers(100, 105))


def the_log_is_cut(world: IncidentWorld) -> None:
    """The newest batch of the log is gone, although it was loaded."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.load()
    with world.stopped():
        os.truncate(world.log_file, batch_positions(world)[0][1])


def the_log_is_cut_and_written_again(world: IncidentWorld) -> None:
    """As before, and other records have taken the offsets. The brokers are old, so only messages show it."""
    world.restart(generation=Generation.V08)
    world.configure({"clusters": {"main": {"generation": Generation.V08.value}}})
    the_log_is_cut(world)
    world.publish(numbers(100, 130))


def a_batch_is_missing(world: IncidentWorld) -> None:
    """The log file of the broker lacks a batch in the middle."""
    loaded(world)
    for start in (10, 20, 30):
        world.publish(numbers(start, start + 10))
    with world.stopped():
        content = world.log_file.read_bytes()
        begin, end = batch_positions(world)[2]
        world.log_file.write_bytes(content[:begin] + content[end:])


def a_bit_flips(world: IncidentWorld) -> None:
    """A bit of a batch has changed on the disk of the broker."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.publish(numbers(20, 30))
    _, end = batch_positions(world)[1]
    with world.log_file.open("r+b") as log:
        log.seek(end - 2)
        [byte] = log.read(1)
        log.seek(end - 2)
        log.write(bytes([byte ^ 1]))


def a_batch_is_too_large(world: IncidentWorld) -> None:
    """A compressed batch has more content than the settings allow."""
    world.configure({"caps": {"max_decompressed_bytes": 100_000}})
    loaded(world)
    world.publish([b"x" * 300_000], compression="gzip")


def values_have_another_type(world: IncidentWorld) -> None:
    """A producer begins to send numbers with a fraction: one among many at first, then only such numbers."""
    world.configure({"topics": {TOPIC: {"format": "json", "columns": {"number": "long"}}}})
    loaded(world, count=200)
    world.publish([*numbers(200, 399), b'{"number": 7.5}'])
    world.load()
    world.publish([b'{"number": %d.5}' % number for number in range(10)])


def a_condition_is_wrong(world: IncidentWorld) -> None:
    """`skip` has a mistake: it leaves out some records that are needed, and then all of them."""
    world.configure({"topics": {TOPIC: {"format": "json", "load": {"skip": "number >= 900"}}}})
    loaded(world, count=1000)
    world.publish(numbers(1000, 3000))


def a_person_asks(world: IncidentWorld) -> None:
    """The table has rows of a person who asks to be forgotten."""
    world.configure({"topics": {TOPIC: {"format": "json"}}})
    emails = ["zelda" if number in {3, 7} else f"p{number}" for number in range(20)]
    values = [b'{"number": %d, "email": "%s@example.org"}' % (n, name.encode()) for n, name in enumerate(emails)]
    for part in (values[:10], values[10:]):
        world.publish(part)
        world.load()


def rows_are_deleted(world: IncidentWorld) -> None:
    """Somebody deletes rows with another program."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.load()
    DeltaTable(str(world.table)).delete("offset >= 15")


def rows_are_gone(world: IncidentWorld) -> None:
    """Somebody deletes rows and vacuums the table, and the brokers do not have the records any more."""
    for start in (0, 10):
        world.publish(numbers(start, start + 10), age_s=2 * HOUR_S)
        world.load()
    DeltaTable(str(world.table)).delete("offset >= 15")
    DeltaTable(str(world.table)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    expire(world, 20)
    world.publish(numbers(20, 25))
    for command in (f"rewind {TOPIC} --version 2", f"replay {TOPIC} --from earliest --to latest"):
        assert world.penstock(f"penstock {command}").exit_code != 0


def rows_are_updated(world: IncidentWorld) -> None:
    """Another program changes values of the table. Their number stays the same."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.load()
    DeltaTable(str(world.table)).update(updates={"key": "value"}, predicate="offset = 15")


def an_old_version_is_restored(world: IncidentWorld) -> None:
    """Somebody restores an old version with Delta's own command."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.load()
    DeltaTable(str(world.table)).restore(1)


def a_data_file_is_lost(world: IncidentWorld) -> None:
    """A data file of the table is gone from the disk."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.load()
    next(world.table.glob("date=*/0-00000000000000000000-*")).unlink()


def the_broker_is_down(world: IncidentWorld) -> None:
    """The only broker of the cluster does not run."""
    loaded(world)
    world.publish(numbers(10, 20))
    world.begin_fault(world.stopped())


def a_partition_has_no_leader(world: IncidentWorld) -> None:
    """A partition has no leader. Our broker is a cluster of one, so only a fake cluster can show this."""
    fake = world.run(FakeCluster(logs={0: holding(0, 10), 1: holding(0, 10)}))
    world.configure({"clusters": {"main": {"bootstrap": fake.bootstrap[0].address}}})
    fake.logs[1].leader = -1
    world.begin_fault(repair=lambda: setattr(fake.logs[1], "leader", 1))


def the_disk_is_full(world: IncidentWorld) -> None:
    """The disk of the lake takes no more data. No test can fill a disk, so the error of the system is injected."""
    loaded(world)
    world.publish(numbers(10, 20))
    full = OSError(28, "No space left on device")
    world.begin_fault(patch("pyarrow.parquet.ParquetWriter.write_table", side_effect=full))


def the_store_refuses(world: IncidentWorld) -> None:
    """The lake is in an object store, which does not let us write any more."""
    store = world.run(object_store())
    world.configure({"lake": store.root, "lake_options": store.options})
    loaded(world)
    world.publish(numbers(10, 20))
    store.answer(403, 1000, "PUT")
    world.begin_fault(repair=lambda: store.answer(403, 0, "PUT"))


_BROKERS = "Brokers do not answer, or a partition has no leader"
_STORE = "The disk or the store is full or refuses"

INCIDENTS = (
    Incident(
        section="Lag grows and nothing is loaded", happen=a_transaction_hangs, sights=(0, 1), rows=30, lost=2
    ),  # the aborted record and the marker of the transaction
    Incident(
        section="Retention removed records before they were loaded",
        happen=retention_is_too_short,
        sights=(0, 1),
        rows=15,
        lost=10,
    ),
    Incident(section="The topic was created again", happen=the_topic_is_created_again, rows=15),
    Incident(section="The log was cut", happen=the_log_is_cut, rows=10),
    Incident(section="The log was cut", happen=the_log_is_cut_and_written_again, sights=(1,), rows=40),
    Incident(section="Offsets are missing and nothing explains it", happen=a_batch_is_missing, rows=30, lost=10),
    Incident(section="A batch is corrupt", happen=a_bit_flips, rows=20, lost=10),
    Incident(section="A record is too large", happen=a_batch_is_too_large, rows=11),
    Incident(section="Values do not decode", happen=values_have_another_type, sights=(0, 1), rows=410),
    Incident(section="A condition leaves out too much", happen=a_condition_is_wrong, sights=(0, 1), rows=3000),
    Incident(section="A person asks to be forgotten", happen=a_person_asks, rows=18, lost=2),
    Incident(section="Somebody changed the table", happen=rows_are_deleted, rows=20),
    Incident(section="Somebody changed the table", happen=rows_are_updated, sights=(1,), rows=20),
    Incident(section="Somebody changed the table", happen=an_old_version_is_restored, sights=(2,), rows=20),
    Incident(section="Rows of the table are gone for ever", happen=rows_are_gone, sights=(0, 1), rows=20, lost=5),
    Incident(section="Data files of the table are lost", happen=a_data_file_is_lost, rows=20),
    Incident(section=_BROKERS, happen=the_broker_is_down, rows=20),
    Incident(section=_BROKERS, happen=a_partition_has_no_leader, sights=(1,), rows=20),
    Incident(section=_STORE, happen=the_disk_is_full, rows=20),
    Incident(section=_STORE, happen=the_store_refuses, sights=(1,), rows=20),
)
