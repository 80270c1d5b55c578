"""The owner of outputs lets Penstock delete what erasures took out of them, or runs what the certificate says."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from pipelines.certificates.certificate import Certificate
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.cli.main import main
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.increments.postgres_output import PostgresOutput
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import ErasedFiles, finish_erasures
from pipelines.maintenance.erased_outputs import delete_erased_of_outputs
from pipelines.reports.table_notes import SeenConsumer, TableNotes, now
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.maintenance.test_erased_files import MARKER, person, scanned

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ZELDA = parse_condition("email = 'zelda@a.org'")
FORMAT: dict[str, Any] = {"format": "json", "columns": {"email": "string", "size": "long"}}


@pytest.fixture
def output(tmp_path: Path) -> DeltaOutput:
    return DeltaOutput(uri=str(tmp_path / "out"))


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([person("adam", 0), person("zelda", 1)])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        assert topic.load().error is None
        yield topic


def follow(topic: TypedTopic, output: Any, consumer: str = "c") -> Any:
    return apply_increment(topic.table, copy, consumer=consumer, into=output)


def copy(increment: Increment) -> Any:
    return increment.arrow(["email", "size"])


def erased(topic: TypedTopic) -> ErasedFiles:
    assert erase(EraseRequest(table=topic.table, condition=ZELDA, run="run", name="T-1")).failure is None
    [result, _] = finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    return result


def certified(topic: TypedTopic) -> Certificate:
    return certify(CertificateRequest(table=topic.table, request="T-1", condition=ZELDA, erase_days=7))


def sizes(output: DeltaOutput) -> list[int]:
    return sorted(DeltaTable(output.uri).to_pyarrow_table().column("size").to_pylist())


def test_old_files_of_an_output_that_has_followed_are_deleted(topic: TypedTopic, output: DeltaOutput) -> None:
    # fault Y15
    follow(topic, output)
    follow(topic, output, "other")
    done = erased(topic)
    follow(topic, output)
    [waiting] = delete_erased_of_outputs(topic.table, done, dry_run=False)
    assert (waiting.table, waiting.waiting, waiting.deleted) == (output.uri, 1, ())
    follow(topic, output, "other")
    before = scanned(Path(output.uri))
    assert before
    [planned] = delete_erased_of_outputs(topic.table, done, dry_run=True)
    assert scanned(Path(output.uri)) == before
    [result] = delete_erased_of_outputs(topic.table, done, dry_run=False)
    assert (result.deleted, result.log_entries > 0, planned.deleted) == (planned.deleted, True, result.deleted)
    assert scanned(Path(output.uri)) == []
    assert [consumer.scan.hits for consumer in certified(topic).consumers if consumer.scan] == [(), ()]
    assert sizes(output) == [0, 0]
    append(topic.fake.logs[0], [person("eve", 2)])
    assert topic.load().error is None
    follow(topic, output)
    follow(topic, output, "other")
    assert sizes(output) == [0, 0, 2, 2]
    [again] = delete_erased_of_outputs(topic.table, done, dry_run=False)
    assert again.deleted == ()


def of_another_program(topic: TypedTopic, uri: Path) -> None:
    rows = DeltaTable(topic.table.uri).to_pyarrow_table().select(["email"])
    for _ in range(2):
        write_deltalake(str(uri), rows, mode="overwrite")


def of_another_consumer(topic: TypedTopic, uri: Path) -> None:
    follow(topic, DeltaOutput(uri=str(uri)), "another")
    for path in Path(topic.table.uri, "_consumers").glob("*"):
        path.unlink()
    write_deltalake(str(uri), DeltaTable(str(uri)).to_pyarrow_table().slice(0, 1), mode="overwrite")


@pytest.mark.parametrize("make", [of_another_program, of_another_consumer, lambda *_: None])
def test_a_note_alone_deletes_nothing(
    make: Callable[[TypedTopic, Path], None], topic: TypedTopic, tmp_path: Path
) -> None:
    """The table that it names has no progress of the consumer (fault Y15)."""
    uri = tmp_path / "else"
    make(topic, uri)
    note = SeenConsumer(consumer="c", kind="DeltaOutput", output=str(uri), version=99, time=now())
    TableNotes(topic.table.uri, {}, SeenConsumer).write("c", note)
    before = sorted(uri.rglob("*"))
    assert delete_erased_of_outputs(topic.table, erased(topic), dry_run=False) == []
    assert sorted(uri.rglob("*")) == before


def test_an_output_whose_log_was_cleaned_up_is_named(topic: TypedTopic, output: DeltaOutput) -> None:
    follow(topic, output)
    done = erased(topic)
    follow(topic, output)
    DeltaTable(output.uri).create_checkpoint()
    Path(output.uri, "_delta_log", f"{0:020d}.json").unlink()
    [result] = delete_erased_of_outputs(topic.table, done, dry_run=False)
    assert (result.deleted, bool(result.unsupported)) == ((), True)


def test_without_an_erasure_no_output_is_touched(topic: TypedTopic, output: DeltaOutput) -> None:
    follow(topic, output)
    assert delete_erased_of_outputs(topic.table, ErasedFiles(table=topic.table.uri), dry_run=False) == ()


def test_the_command_deletes_files_of_outputs_if_it_is_asked_to(
    topic: TypedTopic, output: DeltaOutput, tmp_path: Path
) -> None:  # fault Y15
    settings = tmp_path / "penstock.toml"
    settings.write_text(
        f'lake = "{topic.folder}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[topics.clicks]\nformat = "json"\n'
    )

    def penstock(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["--settings", str(settings), "erase", "clicks", *arguments])

    follow(topic, output)
    erased(topic)
    follow(topic, output)
    assert penstock("--finish").exit_code == 0
    assert scanned(Path(output.uri))
    result = penstock("--finish", "--outputs")
    assert (result.exit_code, output.uri in result.output) == (0, True), result.output
    assert scanned(Path(output.uri)) == []
    assert penstock("--outputs", "--where", "size = 1").exit_code == 2


def test_what_the_certificate_says_of_a_duckdb_file_works(topic: TypedTopic, tmp_path: Path) -> None:  # fault Y15
    output = DuckDBOutput(path=str(tmp_path / "out.duckdb"), table="rows")
    follow(topic, output)
    erased(topic)
    follow(topic, output)
    file = Path(output.path)
    assert MARKER in file.read_bytes()
    [consumer] = certified(topic).consumers
    [statements] = re.findall(r"`([^`]+)`", consumer.clean_up)
    with duckdb.connect() as connection:
        connection.execute(statements)
    Path(f"{file}.new").replace(file)
    assert MARKER not in file.read_bytes()
    assert duckdb_sizes(output) == [(0,)]
    append(topic.fake.logs[0], [person("eve", 2)])
    assert topic.load().error is None
    done = follow(topic, output)
    assert (done["new"], duckdb_sizes(output)) == (1, [(0,), (2,)])


@pytest.mark.postgres
def test_what_the_certificate_says_of_a_postgres_table_works(topic: TypedTopic, postgres_dsn: str) -> None:  # fault Y15
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute('create schema "The Shop"')
        output = PostgresOutput(dsn=postgres_dsn, table="Rows", schema="The Shop")
        follow(topic, output)
        erased(topic)
        follow(topic, output)
        assert _postgres_sizes(connection) == [(0,)]
        assert MARKER in _postgres_file(connection)  # a free page still has the row
        [consumer] = certified(topic).consumers
        assert consumer.has_followed
        [statement] = re.findall(r"`([^`]+)`", consumer.clean_up)
        connection.execute(statement.encode())
        assert MARKER not in _postgres_file(connection)
        append(topic.fake.logs[0], [person("eve", 2)])
        assert topic.load().error is None
        assert (follow(topic, output)["new"], _postgres_sizes(connection)) == (1, [(0,), (2,)])


def _postgres_sizes(connection: "psycopg.Connection[Any]") -> list[Any]:
    return connection.execute('select size from "The Shop"."Rows" order by size').fetchall()


def _postgres_file(connection: "psycopg.Connection[Any]") -> bytes:
    """All bytes of the table on the disk of the server."""
    connection.execute("checkpoint")
    path = """pg_relation_filepath('"The Shop"."Rows"')"""
    [(content,)] = connection.execute(f"select pg_read_binary_file({path})".encode()).fetchall()
    assert isinstance(content, bytes)
    return content


def duckdb_sizes(output: DuckDBOutput) -> list[tuple[int]]:
    with duckdb.connect(output.path) as connection:
        return connection.execute("select size from rows order by size").fetchall()
