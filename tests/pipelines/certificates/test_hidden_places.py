"""A value of a person is searched at each place where it can be alone, and is gone when the erasure is finished."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from kafka_io.records.build import Record, record_batch
from pipelines.certificates.certificate import Certificate
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.rewrites.convert import convert_table
from pipelines.rewrites.redecode import RedecodeRequest
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.state_tables.update import update_state
from pipelines.verify.verify import verify
from resources.failpoints import KILL_AT
from resources.kafka import open_schema_registry
from resources.printed import printed
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.typed import TypedTopic, append, log_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

MARKER = "zelda@private.example"
COLUMNS = {"email": "string", "notes": "array<struct<by: string>>"}
FORMAT: dict[str, Any] = {"format": "json", "columns": COLUMNS, "max_bad_share": 1}
EMAIL = f"email = '{MARKER}'"


def person(email: str = "adam@a.org", note: str = "-") -> bytes:
    return json.dumps({"email": email, "notes": [{"by": note}]}).encode()


def log_with(**parts: Any) -> Log:
    """A log of two records; the second one has these parts."""
    records = [
        Record(offset=0, timestamp=1, key=b"0", value=person()),
        Record(**{"offset": 1, "timestamp": 1, "key": b"1", "value": person(), **parts}),
    ]
    return Log(entries=[(1, record_batch(records))], end=2)


@contextmanager
def ended_at(step: str) -> Iterator[None]:
    """Runs end at this failpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KILL_AT, f"raise:{step}")
        patch.setattr("resources.failpoints._pass_counts", Counter())
        yield


def checkpoint(topic: TypedTopic) -> None:
    DeltaTable(topic.table.uri).create_checkpoint()


def update(topic: TypedTopic) -> None:
    if "state" in topic.format_:
        update_state(topic.table, topic.settings.options_of("clicks"))


def killed_load(topic: TypedTopic) -> None:
    """A load that skips a corrupt batch of the person, and ends before its commit names the bytes that it keeps."""
    append(topic.fake.logs[0], [person(MARKER)])
    last, batch = topic.fake.logs[0].entries[-1]
    topic.fake.logs[0].entries[-1] = last, batch[:17] + bytes([batch[17] ^ 1]) + batch[18:]
    topic.choices = {"on_corrupt": "skip"}
    with ended_at("before load entry"):
        assert "MemoryError" in str(topic.load().error)
    [kept] = Path(topic.table.uri, QUARANTINE_FOLDER).iterdir()
    assert str(kept.relative_to(topic.table.uri)) not in {
        path for _, entry in entries(topic) for path in entry.kept_paths
    }


def entries(topic: TypedTopic) -> Any:
    return topic.table.entries(topic.snapshot)


def killed_conversion(topic: TypedTopic) -> None:
    """A conversion that ends before its commit: a note has the bounds of a file that no commit names."""
    topic.format_ = FORMAT
    request = RedecodeRequest(
        table=topic.table,
        format=topic.settings.format_of("clicks"),
        open_registry=partial(open_schema_registry, topic.settings),
        run="convert",
    )
    with ended_at("table converted"), pytest.raises(MemoryError):
        convert_table(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place with the value.

    Args:
        log: the records of the topic; that with the offset 1 is of the person.
        format_: the settings of the topic.
        where: the rows to erase.
        act: what happens after the load.
        path, hit: a part of the path of the object that has the value, and of what the certificate says of it.
        is_unnamed: whether a killed run has left the value in a data file too, which only `clean` deletes.
    """

    log: Log
    format_: Mapping[str, Any] = field(default_factory=lambda: FORMAT)
    where: str = EMAIL
    act: Callable[[TypedTopic], None] = lambda _: None
    path: str
    hit: str
    is_unnamed: bool = False


PLACES: Mapping[str, Place] = {
    "the bounds of a file in the log": Place(
        log=log_with(value=person(MARKER)), path=f"_delta_log/{1:020d}.json", hit="its bytes"
    ),
    "the bounds in the footer": Place(
        log=log_with(value=person(MARKER)), path=".parquet", hit="bounds or names of columns"
    ),
    "a checkpoint": Place(
        log=log_with(value=person(MARKER)), act=checkpoint, path=".checkpoint.parquet", hit="the column add.stats"
    ),
    "the bytes of a record that does not decode": Place(
        log=log_with(value=b'{"email": "%s", ' % MARKER.encode()), path=".parquet", hit="the column _raw"
    ),
    "a key": Place(log=log_with(key=MARKER.encode()), path=".parquet", hit="the column _kafka_key"),
    "a header": Place(
        log=log_with(headers=((b"user", MARKER.encode()),)), path=".parquet", hit="the column _kafka_headers."
    ),
    "a list": Place(log=log_with(value=person(note=MARKER)), path=".parquet", hit="the column notes."),
    "the log of the state table": Place(
        log=log_with(value=person(MARKER)),
        format_={**FORMAT, "state": {"key": ["email"]}},
        act=update,
        path=f"_state/main/clicks/_delta_log/{1:020d}.json",
        hit="its bytes",
    ),
    "kept bytes that no entry names": Place(
        log=log_with(value=person(MARKER)), act=killed_load, path=f"{QUARANTINE_FOLDER}/0-", hit="its bytes"
    ),
    "the note of a conversion": Place(
        log=log_with(key=MARKER.encode(), value=person(MARKER)),
        format_={},
        where=f"key = '{MARKER}'",
        act=killed_conversion,
        path=f"{STAGING_FOLDER}/convert-",
        hit="its bytes",
        is_unnamed=True,
    ),
}


def certified(topic: TypedTopic, where: str = EMAIL) -> Certificate:
    condition = parse_condition(where)
    return certify(CertificateRequest(table=topic.table, request="T-1", condition=condition, erase_days=7))


def hits(made: Certificate) -> set[tuple[str, str]]:
    """The objects with something of the request, and where in them."""
    return {(f"{table.table}/{hit.path}", hit.place) for table in made.tables for hit in table.scan.hits}


def erased(topic: TypedTopic, where: str = EMAIL) -> None:
    condition = parse_condition(where)
    result = erase(EraseRequest(table=topic.table, condition=condition, also_raw=True, run="r", name="T-1"))
    assert (result.failure, result.rows) == (None, 1)


def finished(topic: TypedTopic) -> None:
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)


def with_marker(folder: Path) -> list[Path]:
    """The files that have the value, as a search says that knows nothing of the certificate."""
    return [path for path in folder.rglob("*") if path.is_file() and _has(path)]


def _has(path: Path) -> bool:
    content = path.read_bytes()
    rows = str(pq.ParquetFile(path).read().to_pylist()) if content.startswith(b"PAR1") else ""
    return MARKER.encode() in content or MARKER in rows


@pytest.mark.parametrize("name", PLACES)
def test_a_value_is_found_at_its_place_and_is_gone_at_the_end(
    name: str, fake: FakeCluster, tmp_path: Path
) -> None:  # faults Y01, Y02, Y03, Y09, Y13, E12
    place = PLACES[name]
    fake.logs = {0: place.log}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=place.format_)
        assert topic.load().error is None
        place.act(topic)
        erased(topic, place.where)
        made = certified(topic, place.where)
        assert [hit for path, hit in hits(made) if place.path in path and place.hit in hit], hits(made)
        assert not made.complete
        update(topic)
        finished(topic)
        if place.is_unnamed:
            assert "files of killed runs" in certified(topic, place.where).tasks[0].what
            clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
        made = certified(topic, place.where)
        assert (made.complete, hits(made)) == (True, set()), made.tasks
        assert with_marker(topic.folder) == []
        assert verify(topic.table).proven


# Long values.

LONG = "https://shop.example/customers/of/the/house/with/a/long/name/and-a-number/zelda/private"
"""A bound of it is cut before the name."""


@pytest.mark.parametrize("other", ["adam", LONG[:20], LONG[:33] + "adam", LONG[:50] + "adam"])
def test_a_long_value_is_found_in_its_cut_bound_and_nothing_of_one_that_begins_in_the_same_way(
    other: str, fake: FakeCluster, tmp_path: Path
) -> None:  # fault Y13
    fake.logs = {0: log_of([person(other)])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        assert topic.load().error is None
        append(fake.logs[0], [person(LONG)])
        assert topic.load().error is None
        log = Path(topic.table.uri, "_delta_log", f"{2:020d}.json")
        assert LONG[:64] in log.read_text()
        assert LONG not in log.read_text()
        where = f"email = '{LONG}'"
        erased(topic, where)
        assert (str(log), "its bytes") in hits(certified(topic, where))
        finished(topic)
        made = certified(topic, where)
        assert (made.complete, hits(made)) == (True, set()), made.tasks


def test_a_bound_that_two_values_share_keeps_the_certificate_open_until_the_log_has_none(
    fake: FakeCluster, tmp_path: Path
) -> None:
    """The cut bound of a row that stays is the one of the erased row, too (fault Y13)."""
    fake.logs = {0: log_of([person(LONG[:-1])])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        assert topic.load().error is None
        append(fake.logs[0], [person(LONG)])
        assert topic.load().error is None
        where = f"email = '{LONG}'"
        erased(topic, where)
        finished(topic)
        made = certified(topic, where)
        assert (made.complete, {place for _, place in hits(made)}) == (False, {"its bytes"})
        topic.format_ = {**FORMAT, "personal": ["email"]}
        append(fake.logs[0], [person("adam")])
        assert topic.load().error is None
        clean(topic.table, keep=timedelta(), target_bytes=1, dry_run=False)
        made = certified(topic, where)
        assert (made.complete, hits(made)) == (True, set()), made.tasks


# The names of columns, which no command removes.


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_value_in_the_name_of_a_column_keeps_the_certificate_open(
    is_nested: bool, fake: FakeCluster, tmp_path: Path
) -> None:  # faults Y04, Y13
    value = {MARKER: 1}
    fake.logs = {0: log_of([json.dumps({"email": MARKER, **({"by": value} if is_nested else value)}).encode()])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "json"})
        assert topic.load().error is None
        append(fake.logs[0], [b'{"email": "adam"}'])
        assert topic.load().error is None
        erased(topic)
        finished(topic)
        made = certified(topic)
        [task] = made.tasks
        assert (made.tables[0].has_values_in_names, made.complete, task.until) == (True, False, None)
        assert "no command removes a column" in task.what
        assert MARKER not in str(printed(made))


def test_the_digest_of_the_last_message_is_named(fake: FakeCluster, tmp_path: Path) -> None:
    """It stays in the ledger, because a load recognises the log by it (fault Y14)."""
    fake.logs = {0: log_of([person("adam"), person(MARKER)])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        assert topic.load().error is None
        digest = topic.entry.state.last_messages[BrokerPartition(None, 0)].digest
        append(fake.logs[0], [person("eve")])
        assert topic.load().error is None
        erased(topic)
        finished(topic)
        made = certified(topic)
        assert (made.complete, made.digests) == (True, 1)
        with_digest = [
            path for path in Path(topic.table.uri, "_delta_log").glob("*.json") if digest in path.read_text()
        ]
        assert len(with_digest) == 1
        assert topic.load().error is None
        other = erase(EraseRequest(table=topic.table, condition=parse_condition("email = 'adam'"), run="r", name="T-2"))
        assert other.rows == 1
        assert certify(CertificateRequest(table=topic.table, request="T-2", erase_days=7)).digests == 0
