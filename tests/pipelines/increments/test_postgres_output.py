"""A Postgres output lands an increment once: when connections break, when others hold locks, when tables appear."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import penstock
from pipelines.increments.increment import apply_increment
from pipelines.increments.postgres_output import PostgresOutput, PostgresWriter
from pipelines.increments.source import NOTHING
from pipelines.reports.lineage_events import DatasetName
from resources.errors import CommitUnknown, IncrementOvertaken, LakeUnavailable, OutputBusy, OutputRefused
from tests.fakes.cut_connection import Cut, CutConnection
from tests.pipelines.increments.test_outputs import FIRST, SECOND, change, rows
from tests.small_table import SmallTable

pytestmark = pytest.mark.postgres


@pytest.fixture
def output(postgres_dsn: str) -> PostgresOutput:
    return PostgresOutput(dsn=postgres_dsn, table="t")


@pytest.fixture
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """Another program's connection to the database."""
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def offsets(connection: psycopg.Connection) -> list[int]:
    return [row[0] for row in connection.execute("select _source_offset from t order by 1").fetchall()]


@contextmanager
def cut_at_commit(output: PostgresOutput, cut: Cut, *, final: bool = False) -> Iterator[PostgresOutput]:
    """The output behind a proxy that cuts the first connection that commits."""
    port = int(conninfo_to_dict(output.dsn)["port"] or 0)
    with CutConnection(port, b"COMMIT\0", cut=cut, final=final) as proxy:
        yield replace(output, dsn=make_conninfo(output.dsn, port=proxy.port))
        assert proxy.done.is_set()


# fault N42
@pytest.mark.parametrize("is_first", [True, False])
def test_a_commit_whose_answer_was_lost_is_found(
    is_first: bool, output: PostgresOutput, connection: psycopg.Connection
) -> None:
    if not is_first:
        output.begin("c", "s").commit(change(rows(1)))
    with cut_at_commit(output, "after") as behind_proxy:
        behind_proxy.begin("c", "s").commit(change(rows(2), SECOND))
    assert output.begin("c", "s").progress == SECOND
    assert offsets(connection) == ([2] if is_first else [1, 2])


@pytest.mark.parametrize("is_first", [True, False])
def test_a_commit_that_was_lost_says_so(is_first: bool, output: PostgresOutput, connection: psycopg.Connection) -> None:
    if not is_first:
        output.begin("c", "s").commit(change(rows(1)))
    with (
        cut_at_commit(output, "before") as behind_proxy,
        pytest.raises(LakeUnavailable, match="nothing of the increment has landed"),
    ):
        behind_proxy.begin("c", "s").commit(change(rows(2), SECOND))
    assert output.begin("c", "s").progress == (NOTHING if is_first else FIRST)
    output.begin("c", "s").commit(change(rows(2), SECOND))
    assert offsets(connection) == ([2] if is_first else [1, 2])


@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_increment_whose_connection_breaks_has_one_effect(
    cut: Cut, output: PostgresOutput, connection: psycopg.Connection, small: SmallTable
) -> None:
    small.commit(small.write(0, 30))
    with cut_at_commit(output, cut) as behind_proxy:
        apply_increment(small.table, lambda increment: increment.arrow(["value"]), consumer="c", into=behind_proxy)
    assert offsets(connection) == [0, 10, 20]


def test_a_commit_is_unknown_while_the_lost_session_may_still_commit(
    output: PostgresOutput, connection: psycopg.Connection
) -> None:
    output.begin("c", "s").commit(change(rows(1)))
    with cut_at_commit(replace(output, timeout_s=0.5), "held") as behind_proxy, pytest.raises(CommitUnknown):
        behind_proxy.begin("c", "s").commit(change(rows(2), SECOND))
    output.begin("c", "s").commit(change(rows(2), SECOND))  # waits for the session, which has lost its proxy
    assert offsets(connection) == [1, 2]


def test_a_commit_is_unknown_if_postgres_does_not_answer_any_more(output: PostgresOutput) -> None:
    output.begin("c", "s").commit(change(rows(1)))
    with (
        cut_at_commit(output, "after", final=True) as behind_proxy,
        pytest.raises(CommitUnknown, match="does not tell whether"),
    ):
        behind_proxy.begin("c", "s").commit(change(rows(2), SECOND))


# fault E19
@pytest.mark.parametrize("version", [2, 3], ids=["same", "other"])
def test_a_lost_commit_after_which_another_process_committed_is_overtaken(version: int, output: PostgresOutput) -> None:
    output.begin("c", "s").commit(change(rows(1)))
    other = output.begin("c", "s")
    settle = PostgresWriter._settle

    def settle_late(writer: PostgresWriter, *arguments: object) -> None:
        other.commit(change(rows(3), replace(SECOND, version=version)))
        settle(writer, *arguments)  # type: ignore[arg-type]

    with (
        cut_at_commit(output, "before") as behind_proxy,
        patch.object(PostgresWriter, "_settle", settle_late),
        pytest.raises(IncrementOvertaken),
    ):
        behind_proxy.begin("c", "s").commit(change(rows(2), SECOND))


@contextmanager
def in_another_thread(writer: PostgresWriter, offset: int) -> Iterator[list[Exception]]:
    """Commit in another thread, which has ended after the `with` block; gives the errors."""
    raised: list[Exception] = []

    def commit() -> None:
        try:
            writer.commit(change(rows(offset), SECOND))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    thread = threading.Thread(target=commit)
    thread.start()
    yield raised
    thread.join(60)
    assert not thread.is_alive()


def wait_for_lock(connection: psycopg.Connection) -> None:
    """Wait until a session waits for a lock."""
    while not connection.execute("select 1 from pg_locks where not granted").fetchall():
        pass


# fault N41
@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_second_of_two_processes_waits_and_is_told_to_run_again(
    is_first: bool, isolation: str, output: PostgresOutput, connection: psycopg.Connection
) -> None:
    """The default of the database for the isolation of transactions does not matter.

    The first increment creates the tables. Then the second process knows only that another one creates them too.
    """
    database = connection.info.dbname
    connection.execute(f"alter database {database} set default_transaction_isolation = '{isolation}'".encode())
    if not is_first:
        output.begin("c", "s").commit(change(rows(1)))
    early, late = output.begin("c", "s"), output.begin("c", "s")
    with output.open() as session, session.transaction():
        early._prepare(session, SECOND, {"_source_offset": "bigint"})
        with in_another_thread(late, 3) as raised:
            wait_for_lock(connection)
            session.execute("commit")
        session.execute("begin")
    assert [type(error) for error in raised] == [OutputBusy if is_first else IncrementOvertaken]
    assert output.begin("c", "s").progress == SECOND
    assert 3 not in offsets(connection)


def test_a_type_that_another_process_has_just_created_with_its_table_is_busy(
    output: PostgresOutput, connection: psycopg.Connection
) -> None:
    """Each table has a type of its name, which a creation in another process may have committed an instant before."""
    connection.execute("create type penstock_increments as enum ()")
    with pytest.raises(OutputBusy, match=r'type "penstock_increments" already exists.* run again'):
        output.begin("c", "s").commit(change(rows(1)))


def test_consumers_do_not_wait_for_each_other(output: PostgresOutput, connection: psycopg.Connection) -> None:
    output.begin("a", "s").commit(change(rows(1)))
    with output.open() as session, session.transaction():
        output.begin("a", "s")._prepare(session, SECOND, {})
        replace(output, timeout_s=0.5).begin("b", "s").commit(change(rows(2)))
    assert offsets(connection) == [1, 2]


# fault N49
def test_a_lock_that_another_process_holds_for_too_long_is_busy(output: PostgresOutput) -> None:
    output.begin("c", "s").commit(change(rows(1)))
    with output.open() as session, session.transaction():
        session.execute("lock table t")
        with pytest.raises(OutputBusy, match="lock timeout"):
            replace(output, timeout_s=0.2).begin("c", "s").commit(change(rows(2), SECOND))
    assert output.begin("c", "s").progress == FIRST


def test_rows_that_break_a_rule_of_the_table_are_refused(
    output: PostgresOutput, connection: psycopg.Connection
) -> None:
    output.begin("c", "s").commit(change(rows(1)))
    connection.execute("create unique index on t (_source_offset)")
    with pytest.raises(OutputRefused, match="duplicate key"):
        output.begin("c", "s").commit(change(rows(1), SECOND))
    assert output.begin("c", "s").progress == FIRST


def test_a_table_is_in_the_schema_of_the_output_with_its_progress(
    output: PostgresOutput, connection: psycopg.Connection
) -> None:
    inside = replace(output, schema="my reports")
    with pytest.raises(OutputRefused, match="my reports"):
        inside.begin("c", "s").commit(change(rows(1)))
    connection.execute('create schema "my reports"')
    inside.begin("c", "s").commit(change(rows(1)))
    query = "select table_name from information_schema.tables where table_schema = 'my reports' order by 1"
    assert connection.execute(query).fetchall() == [("penstock_increments",), ("t",)]
    assert output.begin("c", "s").progress == NOTHING


def test_lineage_names_the_table_by_its_server_also_if_variables_name_the_server(
    output: PostgresOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = conninfo_to_dict(output.dsn)
    host, port, database = parts["host"], parts["port"], parts["dbname"]
    expected = DatasetName(namespace=f"postgres://{host}:{port}", name=f"{database}.public.t")
    assert output.dataset() == expected
    for variable, name in (("PGHOST", "host"), ("PGPORT", "port"), ("PGDATABASE", "dbname")):
        monkeypatch.setenv(variable, str(parts.pop(name)))
    rest = {name: value for name, value in parts.items() if value is not None}
    assert PostgresOutput(dsn=make_conninfo("", **rest), table="t").dataset() == expected


def test_a_server_that_cannot_be_reached_is_unavailable_and_its_password_unseen() -> None:
    output = PostgresOutput(dsn="postgresql://me:secret@127.0.0.1:1/db", table="t")
    with pytest.raises(LakeUnavailable) as raised:
        output.begin("c", "s")
    assert "secret" not in f"{raised.value} {output!r}"


def test_without_psycopg_the_error_names_the_extra() -> None:  # fault F01
    with patch.dict(sys.modules, {"psycopg": None}):
        sys.modules.pop("pipelines.increments.postgres_output")
        with pytest.raises(ImportError, match=r"PostgresOutput needs the package psycopg: .*penstock-etl\[postgres\]"):
            penstock.__getattr__("PostgresOutput")
        assert "PostgresOutput" not in dir(penstock)  # Dagster looks for components among all names
    assert "PostgresOutput" in dir(penstock)
