"""The certificate says what was erased, finds every byte that is left, and is complete only if nothing is."""

import gzip
import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.certificates.certificate import Certificate
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import apply_increment
from pipelines.layout.conditions import one_of, parse_condition
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.reports.table_notes import SeenConsumer, TableNotes
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.state_tables.update import update_state
from resources.errors import ConditionInvalid, EraseRefused
from resources.printed import printed
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ZELDA = parse_condition("email = 'zelda@a.org'")
FORMAT: dict[str, Any] = {
    "format": "json",
    "columns": {"email": "string", "size": "long", "note": "string"},
    "state": {"key": ["email"]},
    "max_bad_share": 1,
}


def person(name: str, size: int) -> bytes:
    return json.dumps({"email": f"{name}@a.org", "size": size}).encode()


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    """A person with two rows in two files that were compacted into one, and a state table."""
    fake.logs = {0: log_of([person("adam", 0), person("zelda", 1)])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        topic.load()
        append(fake.logs[0], [person("zelda", 2), person("eve", 3)])
        topic.load()
        clean(topic.table, keep=timedelta(days=1), target_bytes=1 << 20, dry_run=False)
        state(topic)
        yield topic


def state(topic: TypedTopic) -> None:
    update_state(topic.table, topic.settings.options_of("clicks"))


def erased(topic: TypedTopic, request: str = "T-1") -> None:
    result = erase(EraseRequest(table=topic.table, condition=ZELDA, run="run", name=request))
    assert result.failure is None


def finished(topic: TypedTopic) -> None:
    """Erase the person, and everything that is left of her."""
    erased(topic)
    state(topic)
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)


def certificate(topic: TypedTopic, condition: Any = ZELDA, request: str = "T-1") -> Certificate:
    return certify(CertificateRequest(table=topic.table, request=request, condition=condition, erase_days=7))


def tasks(certificate: Certificate) -> str:
    return "\n".join(task.what for task in certificate.tasks)


def places(certificate: Certificate) -> dict[str, list[str]]:
    hits: dict[str, list[str]] = {}
    for hit in certificate.tables[0].scan.hits:
        hits.setdefault(hit.path, []).append(hit.place)
    return hits


def test_a_finished_erasure_is_complete(topic: TypedTopic) -> None:  # fault Y13
    finished(topic)
    made = certificate(topic)
    assert made.complete, tasks(made)
    [erasure] = made.erasures
    assert (erasure.version, erasure.before, erasure.rows) == (erasure.before + 1, erasure.before, 2)
    assert [(part.partition, part.rows) for part in erasure.partitions] == [(0, 2)]
    assert (made.searched, made.left_out, made.proven) == (1, 0, True)
    table, of_state = made.tables
    assert len(table.files) == 3  # two loads and a compaction
    for file in (*table.files, *of_state.files):
        assert not file.is_there
        assert file.deleted_at is not None
        assert erasure.time - timedelta(seconds=1) <= file.deleted_at <= made.made_at
    assert table.scan.objects > 5
    assert table.scan.bytes > 5000
    assert (table.scan.hits, table.scan.unsearched, of_state.scan.hits) == ((), (), ())


def test_an_erasure_that_waits_is_open_until_its_deadline(topic: TypedTopic) -> None:  # fault Y13
    erased(topic)
    made = certificate(topic)
    deadline = made.erasures[0].time + timedelta(days=7)
    assert [task.until for task in made.tasks] == [deadline, None]
    assert "3 files and" in made.tasks[0].what
    assert "penstock state clicks" in made.tasks[1].what
    state(topic)
    assert [task.until for task in certificate(topic).tasks] == [deadline, deadline]
    waiting = [file.path for file in made.tables[0].files if file.is_there]
    assert set(waiting) < set(places(made))
    assert all(path.startswith("_delta_log/") for path in set(places(made)) - set(waiting))
    assert "the column email" in places(made)[waiting[0]]
    by_offsets = certificate(topic, None)
    assert by_offsets.searched is None
    found = {hit.path: hit.place for hit in by_offsets.tables[0].scan.hits}
    assert set(found) == set(waiting)
    assert sorted(found.values()) == [
        "1 rows with erased offsets",
        "1 rows with erased offsets",
        "2 rows with erased offsets",
    ]


def test_without_values_a_finished_erasure_is_complete_as_far_as_offsets_show(topic: TypedTopic) -> None:
    finished(topic)
    assert certificate(topic, None).complete


def test_no_value_is_in_the_certificate(topic: TypedTopic) -> None:  # fault Y13
    erased(topic)
    text = json.dumps(printed(certificate(topic)))
    assert "zelda" not in text
    assert "zelda" not in repr(CertificateRequest(table=topic.table, request="x", condition=ZELDA, erase_days=7))


def test_a_request_has_several_erasures_and_each_of_them_its_own_rows(topic: TypedTopic) -> None:
    erased(topic)
    append(topic.fake.logs[0], [person("zelda", 4), person("max", 5)])
    topic.load()
    assert "rows or values of the request" in tasks(certificate(topic))
    erased(topic)
    other = EraseRequest(table=topic.table, condition=parse_condition("email = 'max@a.org'"), run="r", name="T-2")
    assert erase(other).rows == 1
    assert [erasure.rows for erasure in certificate(topic).erasures] == [2, 1]
    assert [erasure.rows for erasure in certificate(topic, other.condition, "T-2").erasures] == [1]
    state(topic)
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    assert certificate(topic).complete
    assert certificate(topic, other.condition, "T-2").complete


def test_an_unknown_request_is_refused(topic: TypedTopic) -> None:
    finished(topic)
    with pytest.raises(EraseRefused, match="no erasure with the request T-9"):
        certificate(topic, request="T-9")
    with pytest.raises(ConditionInvalid, match="no column name"):
        certificate(topic, parse_condition("name = 'zelda'"))


LEFT = {
    "a note of a conversion": (f"{STAGING_FOLDER}/convert-1/x.json", json.dumps({"max": "zelda@a.org"}).encode()),
    "kept bytes": (f"{QUARANTINE_FOLDER}/0-1.bytes", b"zelda@a.org"),
    "a kept batch": (
        f"{QUARANTINE_FOLDER}/0-2.bytes",
        bytes(16) + b"\2" + bytes(5) + b"\1" + bytes(38) + gzip.compress(b"zelda@a.org"),
    ),
    "an escaped text of a log": ("_delta_log/x.json", json.dumps(json.dumps({"email": 'zelda@a.org"'})).encode()),
    "a checksum": ("_delta_log/.00000000000000000001.json.crc", b"... zelda@a.org ..."),
    "a path": ("email=zelda%40a.org/x", b""),
}


@pytest.mark.parametrize("left", LEFT)
def test_a_value_is_found_wherever_it_is_left(topic: TypedTopic, left: str) -> None:  # fault Y13
    finished(topic)
    path, content = LEFT[left]
    file = Path(topic.table.uri, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    made = certificate(topic)
    assert list(places(made)) == [path]
    assert not made.complete


def test_a_value_is_found_in_a_dictionary_that_no_row_uses(topic: TypedTopic) -> None:  # fault Y13
    finished(topic)
    path = Path(topic.table.uri, "date=2026-01-01", "left.parquet")
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["adam", "zelda@a.org"]))})
    pq.write_table(table, path, compression="zstd")
    assert pq.read_table(path).column("x").to_pylist() == ["adam"]
    assert places(certificate(topic)) == {"date=2026-01-01/left.parquet": ["the column x"]}


def test_a_file_of_a_killed_run_is_found_by_its_offsets(topic: TypedTopic) -> None:  # fault Y13
    [before] = (path for path in Path(topic.table.uri).rglob("*.parquet") if pq.read_metadata(path).num_rows == 4)
    content = before.read_bytes()
    finished(topic)
    path = Path(topic.table.uri, "left.parquet")
    path.write_bytes(content)
    assert places(certificate(topic, None)) == {"left.parquet": ["2 rows with erased offsets"]}
    assert set(places(certificate(topic))["left.parquet"]) == {
        "bounds or names of columns",
        "the column email",
        "2 rows with erased offsets",
        "2 rows of the request",
    }


def test_what_cannot_be_searched_is_open(topic: TypedTopic) -> None:
    finished(topic)
    torn = Path(topic.table.uri, "left.parquet")
    torn.write_bytes(b"PAR1 and no footer")
    made = certificate(topic)
    assert made.tables[0].scan.unsearched == ("left.parquet",)
    assert "cannot be searched" in tasks(made)


def test_numbers_are_compared_with_their_columns(topic: TypedTopic, tmp_path: Path) -> None:
    condition = one_of("size", ["1"])
    assert erase(EraseRequest(table=topic.table, condition=condition, run="run", name="n")).rows == 1
    made = certificate(topic, condition, "n")
    assert (made.searched, made.left_out) == (0, 1)
    state(topic)
    finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    assert certificate(topic, condition, "n").complete


def test_files_that_another_program_deleted_are_gone_at_an_unknown_time(topic: TypedTopic) -> None:
    erased(topic)
    for file in certificate(topic).tables[0].files:
        Path(topic.table.uri, file.path).unlink()
    files = certificate(topic).tables[0].files
    assert {(file.is_there, file.deleted_at) for file in files} == {(False, None)}
    assert "objects of its log" in tasks(certificate(topic))  # their bounds are still there


def test_copies_beside_the_table_from_before_the_erasure_are_open(topic: TypedTopic) -> None:
    beside = Path(topic.table.uri, QUARANTINE_FOLDER, "copy")
    beside.parent.mkdir()
    beside.write_bytes(b"anything")
    os.utime(beside, (time.time() - 60, time.time() - 60))
    erased(topic)
    assert certificate(topic, None).tables[0].beside == (f"{QUARANTINE_FOLDER}/copy",)


def test_consumers_are_known_and_those_that_have_not_followed_are_open(topic: TypedTopic, tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "sizes"))

    def run(consumer: str) -> None:
        apply_increment(topic.table, lambda increment: increment.arrow(), consumer=consumer, into=output)

    run("first")
    run("second")
    finished(topic)
    run("second")
    made = certificate(topic)
    first, second = made.consumers
    assert (first.consumer, first.output, first.has_followed) == ("first", output.uri, False)
    assert (second.consumer, second.has_followed) == ("second", True)
    assert second.scan is not None
    assert second.scan.hits
    assert "`penstock erase clicks --finish --outputs` deletes its old files" in second.clean_up
    assert (
        tasks(made)
        == f"the output {output.uri} of the consumer first has version {first.version} of the table: run its increment"
    )
    run("first")
    assert certificate(topic).complete
    assert certificate(topic, None).consumers[0].scan is None


def test_a_vacuumed_output_with_personal_columns_has_nothing_left(topic: TypedTopic, tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "sizes"), personal=["email", "_kafka_key"])

    def run() -> None:
        apply_increment(topic.table, lambda increment: increment.arrow(), consumer="one", into=output)

    run()
    finished(topic)
    run()
    DeltaTable(output.uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    [consumer] = certificate(topic).consumers
    assert consumer.scan is not None
    assert (consumer.scan.hits, consumer.has_followed) == ((), True)


def test_a_consumer_that_finds_nothing_new_says_so(topic: TypedTopic, tmp_path: Path) -> None:
    output = DeltaOutput(uri=str(tmp_path / "sizes"))
    seen = TableNotes(topic.table.uri, {}, SeenConsumer)
    apply_increment(topic.table, lambda increment: increment.arrow(), consumer="one", into=output)
    [before] = seen.read()
    DeltaTable(topic.table.uri).alter.set_table_properties({"delta.appendOnly": "false"})
    assert apply_increment(topic.table, lambda increment: increment.arrow(), consumer="one", into=output) is None
    [note] = seen.read()
    assert note.version == before.version + 1 == topic.snapshot.version


def test_the_places_elsewhere_are_named(topic: TypedTopic) -> None:
    finished(topic)
    with_brokers = certify(CertificateRequest(table=topic.table, request="T-1", erase_days=7, cluster=None))
    assert [copy.place for copy in with_brokers.elsewhere] == [
        "Kafka",
        "store",
        "outputs",
        "Dagster",
        "readers",
        "backups",
    ]
    assert "the brokers were not asked" in with_brokers.elsewhere[0].says
