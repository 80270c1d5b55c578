"""Commands that take rows out of a table, keep them out, or change them: each is killed once, and then run again."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.maintenance.clean import clean, data_files, files_in
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.table.exact_sets import OFFSETS_FOLDER
from pipelines.table.open_table import file_paths
from pipelines.verify.verify import verify
from tests.crash.child import DriverOptions
from tests.crash.drivers import Ended
from tests.crash.harness import LOAD, Act, Trial
from tests.crash.worlds import MESSAGES, TOPIC
from tests.failpoints import ERASE_FAILPOINTS, RETIRE_FAILPOINTS, REWRITE_FAILPOINTS

Row = tuple[int, str, Any]
"""The number and the padding of a message, and the day of its event in a table with folders of such days."""
Change = Callable[[Row], Row | None]
"""What a row becomes; None if it is taken out."""
_JSON = {"value_format": "json"}
_DAYS = {**_JSON, "variant": "days", "partition_by": "event_day"}
_SETS_IN_FILES = DriverOptions(inline_bytes=0)
_THIRDS = f"number in ({', '.join(str(number) for number in range(0, len(MESSAGES), 3))})"


def _without_thirds(row: Row) -> Row | None:
    return None if row[0] % 3 == 0 else row


def _masked(row: Row) -> Row:
    return row[0], "***", row[2]


def _unless_old(row: Row) -> Row | None:
    return None if row[2] < datetime.now(UTC).date() - timedelta(days=1) else row


def _same(row: Row) -> Row:
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A command that is killed.

    Args:
        world: where the topic is.
        earlier: the commands that make the table.
        act: the command.
        change: what it does with each row.
        steps: the failpoints, some with the number of the pass. The last one is after the entry of the command.
    """

    world: str = "modern"
    earlier: Sequence[Act] = (Act(settings=_JSON),)
    act: Act
    change: Change
    steps: Sequence[str]


_ERASE = Act(arguments=("erase", TOPIC, "--where", _THIRDS, "--yes", "--json"), settings=_JSON, options=_SETS_IN_FILES)
REMOVALS = {
    "erase": Removal(
        act=_ERASE,
        change=_without_thirds,
        steps=(*ERASE_FAILPOINTS, "file closed:2", "offsets written:3", "log entry written", "log entry synced"),
    ),
    "erase 0.7": Removal(world="0.7", act=_ERASE, change=_without_thirds, steps=ERASE_FAILPOINTS),
    "rewrite": Removal(
        act=Act(
            arguments=("rewrite", TOPIC, "--json"), settings={**_JSON, "lines": 'load = {mask = {padding = "***"}}'}
        ),
        change=_masked,
        steps=(*REWRITE_FAILPOINTS, "file closed:2", "file converted:3", "log entry written"),
    ),
    "retire": Removal(
        earlier=(Act(settings=_DAYS),),
        act=Act(
            arguments=("clean", TOPIC, "--delete", "--json"),
            settings={**_DAYS, "lines": "keep_days = 1"},
            options=_SETS_IN_FILES,
        ),
        change=_unless_old,
        steps=(*RETIRE_FAILPOINTS, "offsets written", "log entry written"),
    ),
    "finish": Removal(
        earlier=(Act(settings=_JSON), _ERASE),
        act=Act(arguments=("erase", TOPIC, "--finish", "--json"), settings=_JSON),
        change=_same,
        steps=("clean announced", "file cleaned", "file cleaned:3", "log entry scrubbed"),
    ),
}
KEPT: Sequence[Row] = [
    (message["number"], message["padding"], None) for message in map(json.loads, MESSAGES) if message["number"] % 3
]
"""The rows of the topic without those that are erased or skipped."""
SKIP = Act(settings={**_JSON, "lines": f'load = {{skip = "{_THIRDS}"}}'}, options=_SETS_IN_FILES)
"""A load whose records without rows are in sets, each in a file."""
SKIP_STEPS = ("offsets written", "offsets written:3", "file closed:2", "before load entry:2", "after load entry")


def rows_of(trial: Trial) -> Sequence[Row]:
    """The rows that a reader of the table sees, in the order of their numbers."""
    snapshot = trial.table.existing()
    if snapshot is None or snapshot.entry is None:
        return []
    rows = snapshot.opened.dataset().to_table().to_pylist()
    return sorted((row["number"], row["padding"], row.get("_kafka_event_day")) for row in rows)


def changed(rows: Sequence[Row], change: Change) -> Sequence[Row]:
    """The rows after a change."""
    return [after for row in rows if (after := change(row)) is not None]


def play_removal(trial: Trial, removal: Removal, step: str) -> Ended:
    """Kill the command at a failpoint, load, and run the command again; returns how the killed driver ended.

    The table must be as the earlier commands leave it.
    """
    before = rows_of(trial)
    after = changed(before, removal.change)
    killed = trial.start(removal.act, kill_at=step).wait()
    left = rows_of(trial)
    assert left in (before, after), f"the table is neither as before nor as after: it has {len(left)} rows"
    check_proven(trial)
    # A load must have the rules that the table has.
    load = replace(removal.earlier[0] if left == before else removal.act, arguments=LOAD)
    complete(trial, load, left)
    complete(trial, removal.act, after)
    complete(trial, replace(removal.act, arguments=LOAD), after)
    return killed


def complete(trial: Trial, act: Act, expected: Sequence[Row]) -> None:
    """Run a command to its end; the table must then have these rows."""
    ended = trial.start(act).wait()
    assert ended.code == 0, ended.output
    assert rows_of(trial) == expected
    check_proven(trial)


def check_proven(trial: Trial) -> None:
    """Check that the table is proven, and that each file that it names is there, complete."""
    snapshot = trial.table.existing()
    if snapshot is not None and snapshot.entry is not None:
        proof = verify(trial.table)
        assert proof.proven, proof.problems
        assert not trial.table.damaged(snapshot.opened)


def check_cleaned(trial: Trial, expected: Sequence[Row]) -> None:
    """Check that housekeeping leaves the files that the table names, and no other one."""
    clean(trial.table, keep=timedelta(), target_bytes=1, dry_run=False)
    assert rows_of(trial) == expected
    check_proven(trial)
    snapshot = trial.table.snapshot()
    assert {info.path for info in data_files(trial.table)} == file_paths(snapshot.opened)
    kept = {path for _, entry in trial.table.entries(snapshot) for path in entry.kept_paths}
    folders = (QUARANTINE_FOLDER, OFFSETS_FOLDER, STAGING_FOLDER)
    assert {info.path for info in chain(*(files_in(trial.table, folder) for folder in folders))} == kept


def numbers_in_files(trial: Trial) -> set[int]:
    """The numbers of the messages in all data files in the folder of the table, named or not."""
    files = Path(trial.table.uri).rglob("*.parquet")
    return {
        number
        for file in files
        if "_delta_log" not in file.parts
        for number in pq.ParquetFile(file).read(["number"]).column("number").to_pylist()
    }
