"""What an erasure took out of a table is deleted for good: files, bounds in the log, and bytes beside the table."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from pipelines.cli.main import main
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.layout.conditions import parse_condition
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest
from pipelines.maintenance.erase import erase as erase_rows
from pipelines.maintenance.erased_files import (
    ErasedFiles,
    delete_erased,
    delete_erased_of_state,
    finish_erasures,
    outdated_files,
    waiting_erasures,
)
from pipelines.maintenance.rewind import plan_rewind
from pipelines.rewrites.rewrite import RewriteRequest, rewrite
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.state_tables.state_table import state_output
from pipelines.state_tables.update import update_state
from pipelines.table.lake_table import DAMAGED
from pipelines.verify.verify import verify
from resources.errors import RewindRefused
from resources.failpoints import KILL_AT
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.thorough import first

pytestmark = pytest.mark.slow  # each test fills a table and changes it

MARKER = b"zelda"
FORMAT: dict[str, Any] = {
    "format": "json",
    "columns": {"email": "string", "size": "long"},
    "state": {"key": ["email"]},
    "max_bad_share": 1,
}
HOUR = timedelta(hours=1)


def person(name: str, size: int) -> bytes:
    return b'{"email": "%s@a.org", "size": %d}' % (name.encode(), size)


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of([person("adam", 0), person("zelda", 1)])}
    with fake:
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=FORMAT)
        assert topic.load().error is None
        for size in range(2, 14):
            append(fake.logs[0], [person("eve", size)])
            assert topic.load().error is None
        clean(topic.table, keep=timedelta(days=1), target_bytes=1 << 20, dry_run=False)
        update_state(topic.table, topic.settings.options_of("clicks"))
        yield topic


def erase(topic: TypedTopic) -> None:
    """Erase the person. The brokers still have the record."""
    result = erase_rows(EraseRequest(table=topic.table, condition=parse_condition("email = 'zelda@a.org'"), run="run"))
    assert (result.failure, result.rows) == (None, 1)
    update_state(topic.table, topic.settings.options_of("clicks"))


def scanned(folder: Path) -> list[str]:
    """The files with a value of the person: as bytes, or as a value in a Parquet file."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and _has(path))


def _has(path: Path) -> bool:
    content = path.read_bytes()
    is_parquet = content.startswith(b"PAR1")
    return MARKER in content or (is_parquet and MARKER.decode() in str(pq.ParquetFile(path).read().to_pylist()))


def finish(table: DeltaLakeTable, **options: Any) -> ErasedFiles:
    return delete_erased(table, **{"older_than": timedelta(), "dry_run": False, **options})


def test_nothing_is_deleted_before_there_is_an_erasure_that_is_old_enough(topic: TypedTopic) -> None:
    assert finish(topic.table) == ErasedFiles(table=topic.table.uri)
    erase(topic)
    before = scanned(topic.folder)
    assert finish(topic.table, older_than=HOUR) == ErasedFiles(table=topic.table.uri, waiting=1)
    planned = finish(topic.table, dry_run=True)
    assert planned.deleted
    assert scanned(topic.folder) == before


def test_an_erasure_waits_until_its_files_are_gone(topic: TypedTopic) -> None:  # fault Y09
    assert waiting_erasures(topic.table) == []
    erase(topic)
    [committed] = waiting_erasures(topic.table)
    assert datetime.now(UTC) - committed < timedelta(minutes=5)
    finish(topic.table)
    assert waiting_erasures(topic.table) == []
    erase_rows(EraseRequest(table=topic.table, condition=parse_condition("size = 5"), run="run"))
    [later] = waiting_erasures(topic.table)
    assert later > committed
    for path in outdated_files(topic.table, topic.snapshot, topic.snapshot.version):
        Path(topic.table.uri, path).unlink(missing_ok=True)  # by a vacuum, which announces nothing
    assert waiting_erasures(topic.table) == []


def test_no_byte_of_the_person_is_left(topic: TypedTopic) -> None:  # faults Y02, Y09
    unnamed = Path(topic.table.uri, "date=2026-01-02", "part-of-a-load-that-runs.parquet")
    for folder in (QUARANTINE_FOLDER, DAMAGED, f"{STAGING_FOLDER}/convert-1"):
        beside = Path(topic.table.uri, folder, "copy")
        beside.parent.mkdir(parents=True)
        beside.write_bytes(MARKER)
        os.utime(beside, (time.time() - 60, time.time() - 60))
    unnamed.parent.mkdir()
    unnamed.write_bytes(b"rows that no commit names yet")
    erase(topic)
    planned = finish(topic.table, dry_run=True)
    done = finish(topic.table)
    assert (done.deleted, done.beside, done.bytes) == (planned.deleted, planned.beside, planned.bytes)
    assert len(done.beside) == 3
    assert done.log_entries > 1
    state = delete_erased_of_state(topic.table, done, dry_run=False)
    assert state.deleted
    assert scanned(topic.folder) == []
    assert unnamed.exists()
    assert verify(topic.table).proven
    assert topic.deep().problems == ()
    assert len(topic.rows("email")) == 13
    again = finish(topic.table)
    assert (again.deleted, again.log_entries, again.busy) == ((), 0, False)
    append(topic.fake.logs[0], [person("eve", 14)])
    assert topic.load().error is None
    assert verify(topic.table).proven
    with pytest.raises(RewindRefused):
        plan_rewind(topic.table, 2, run="run")


def test_a_state_table_that_has_not_followed_waits(topic: TypedTopic) -> None:  # fault Y03
    before = state_output(topic.table).open()
    assert before is not None
    erase(topic)
    done = finish(topic.table)
    before_erasure = ErasedFiles(table=done.table, version=topic.table.snapshot().version + 1)
    waiting = delete_erased_of_state(topic.table, before_erasure, dry_run=False)
    assert (waiting.waiting, waiting.deleted) == (1, ())
    assert set(before.file_uris()) - {str(path) for path in topic.folder.rglob("*.parquet")} == set()
    assert delete_erased_of_state(topic.table, done, dry_run=False).deleted


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    first(
        4,
        [
            "file cleaned:1",
            "log entry scrubbed:1",
            "checkpoint written:1",
            "checkpoint scrubbed:1",
            "clean announced:1",
            "file cleaned:5",
            "log entry scrubbed:9",
            "old checkpoint deleted:1",
        ],
    ),
)
def test_what_was_killed_is_continued(topic: TypedTopic, step: str) -> None:  # fault Y09
    erase(topic)
    rows = topic.rows("email", "_kafka_offset")
    program = f"""
from datetime import UTC, datetime, timedelta
from pipelines.formats.tables import table_at
from pipelines.maintenance.erased_files import delete_erased
delete_erased(table_at({topic.table.uri!r}), older_than=timedelta(), dry_run=False)
"""
    environment = {**os.environ, KILL_AT: step}
    killed = subprocess.run([sys.executable, "-c", program], check=False, env=environment, timeout=60)
    assert killed.returncode == -9
    assert topic.rows("email", "_kafka_offset") == rows
    assert verify(topic.table).proven
    delete_erased_of_state(topic.table, finish(topic.table), dry_run=False)
    assert scanned(topic.folder) == []
    assert topic.rows("email", "_kafka_offset") == rows
    assert verify(topic.table).proven


def test_what_a_rewrite_took_out_is_deleted(topic: TypedTopic, tmp_path: Path) -> None:  # fault Y09
    (tmp_path / "people").write_bytes(b"0123456789abcdef")
    topic.secrets = {"people": {"id": "k1", "key": f"file:{tmp_path}/people"}}
    topic.format_ = {name: value for name, value in topic.format_.items() if name != "state"}
    topic.format_ |= {"load": {"hash": {"email": "people"}}}
    assert "zelda" in str(topic.rows("email"))
    result = rewrite(RewriteRequest(table=topic.table, format=topic.settings.format_of("clicks"), run="again"))
    assert result.failure is None
    topic_table, state = finish_erasures(topic.table, older_than=timedelta(), dry_run=False)
    assert topic_table.deleted
    assert state.waiting == 1  # it has not followed yet
    assert scanned(Path(topic.table.uri)) == []
    assert verify(topic.table).proven
    assert topic.deep().problems == ()


def test_the_command_finishes_erasures_without_waiting(topic: TypedTopic, tmp_path: Path) -> None:  # fault Y09
    settings = tmp_path / "penstock.toml"
    settings.write_text(
        f'lake = "{topic.folder}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[topics.clicks]\nformat = "json"\n'
    )

    def penstock(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["--settings", str(settings), "erase", "clicks", *arguments])

    assert penstock("--where", "email = 'zelda@a.org'", "--yes").exit_code == 0
    update_state(topic.table, topic.settings.options_of("clicks"))
    assert penstock("--finish", "--where", "size = 1").exit_code == 2
    finished = penstock("--finish")
    assert finished.exit_code == 0, finished.output
    assert "from before an erasure or a rewrite deleted" in finished.output
    assert scanned(topic.folder) == []
    assert verify(topic.table).proven
