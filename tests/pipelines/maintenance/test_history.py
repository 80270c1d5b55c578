"""The history lists every commit of a table, the newest first, and which of them a rewind cancelled."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.commit.commit import commit
from pipelines.commit.replacement import CutChange
from pipelines.delta.commits import read_commit
from pipelines.delta.delta_log import DeltaLog
from pipelines.identity.identity import table_state
from pipelines.ledger.incarnations import effective_entries
from pipelines.ledger.ledger import CommitKind, LedgerEntry, RecordedChoice, TableState, TopicIdentity
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.maintenance.history import HistoryEntry, history, with_rewinds
from pipelines.maintenance.rewind import plan_rewind, rewind
from pipelines.table.table_commit import TableCommit
from resources.errors import TableMissing
from resources.printed import printed
from resources.stores.object_reads import ObjectReader
from tests.small_table import SmallTable

A, B = BrokerPartition(0, 0), BrokerPartition(0, 1)


def whats(past: Iterable[HistoryEntry]) -> list[tuple[int, str, int | None]]:
    return [(entry.commit.version, entry.what, entry.undone_by) for entry in past]


def with_range(facts: SliceFacts, **changes: Any) -> SliceFacts:
    return replace(facts, range=replace(facts.range, **changes))


def logged(version: int, target: int | None = None, *, ours: bool = True) -> TableCommit:
    entry = LedgerEntry(
        commit=str(version),
        run="run",
        code="test",
        kind=CommitKind.LOAD if target is None else CommitKind.REWIND,
        sequence=version,
        ranges=(),
        state=TableState(topic=TopicIdentity(cluster="main", name="clicks", incarnation="7")),
        target=target,
    )
    time = datetime(2026, 1, 2, tzinfo=UTC)
    return TableCommit(version=version, time=time, operation="WRITE", entry=entry if ours else None)


@pytest.mark.parametrize(
    ("targets", "undone"),
    [
        ([None, None, 0], {1: 2}),
        ([None, None, None, 1, None, 0], {1: 5, 2: 5, 3: 5, 4: 5}),
        ([None, None, None, 0, 2], {3: 4}),
        ([None, None, None, 1, None, 3], {2: 3, 4: 5}),
        ([None, None, 0, None, 2], {1: 2, 3: 4}),
    ],
    ids=["once", "further", "taken back", "to a rewind", "again"],
)
def test_commits_that_a_rewind_cancelled_are_marked(targets: list[int | None], undone: dict[int, int]) -> None:
    commits = [logged(version, target) for version, target in enumerate(targets)][::-1]
    past = list(with_rewinds(commits))
    assert [entry.commit for entry in past] == commits
    assert {entry.commit.version: entry.undone_by for entry in past if entry.undone_by is not None} == undone
    entries = [(commit.version, commit.entry) for commit in commits if commit.entry]
    assert [version for version, _ in effective_entries(entries)] == [
        entry.commit.version for entry in past if entry.undone_by is None
    ]


def test_a_rewind_also_cancels_commits_of_others() -> None:
    commits = [logged(4, 1), logged(3, ours=False), logged(2), logged(1, ours=False), logged(0)]
    assert [entry.undone_by for entry in with_rewinds(commits)] == [None, 4, 4, None, None]


def test_the_history_says_what_each_commit_did(small: SmallTable) -> None:
    small.commit(small.write(0, 30), small.write(30, 50))
    small.handle().optimize.compact()
    small.commit(small.write(50, 80))
    snapshot = small.table.snapshot()
    choice = RecordedChoice(setting="on_truncated", value="rewind", partition="0-0", start=60, stop=80)
    commit(
        small.table,
        snapshot,
        CutChange(
            state=table_state(snapshot, small.topic), ranges=(OffsetRange(A, 60, 80),), run="run", choices=(choice,)
        ),
    )
    rewind(plan_rewind(small.table, 3, run="rewinder"))
    small.handle().restore(1)
    past = list(history(small.table))
    assert whats(past) == [
        (6, "RESTORE", None),
        (5, "rewind to 3", None),
        (4, "cut", 5),
        (3, "load", None),
        (2, "OPTIMIZE", None),
        (1, "load", None),
        (0, "CREATE TABLE", None),
    ]
    assert past[0].notes == ("version 1",)
    assert past[2].notes[:2] == ("cancelled by version 5", str(choice))


def test_an_entry_has_the_sums_and_the_sources_of_its_commit(small: SmallTable) -> None:
    first = small.write(0, 50)
    small.commit(
        with_range(first, source="0@a:9092", gaps={"control": 1}),
        with_range(small.write(50, 80, rows=0), gaps={"expired": 30}),
        with_range(small.write(0, 20, partition=1), source="b"),
    )
    entry = next(iter(history(small.table)))
    assert (entry.rows, entry.bytes, entry.files) == (7, 100, 2)
    assert (entry.gaps, entry.sources) == ({"control": 1, "expired": 30}, ("0@a:9092", "b"))


def test_the_json_of_an_entry_has_each_range(small: SmallTable) -> None:
    facts = small.write(0, 50)
    small.commit(facts)
    load, created = history(small.table)
    shown = printed(load)
    assert shown["ranges"] == [
        {
            "broker": 0,
            "partition": 0,
            "start": 0,
            "stop": 50,
            "rows": 5,
            "bytes": 50,
            "loaded_at_us": 1,
            "gaps": {},
            "path": facts.files[0].path,
            "source": "",
            "isolation": "",
        }
    ]
    assert load.entry is not None
    names = ("version", "kind", "operation", "run", "commit", "rows", "files", "covered", "incarnation", "undone_by")
    assert {name: shown[name] for name in names} == {
        "version": 1,
        "kind": "load",
        "operation": "WRITE",
        "run": "run",
        "commit": load.entry.commit,
        "rows": 5,
        "files": 1,
        "covered": {"0-0": [0, 50]},
        "incarnation": "7",
        "undone_by": None,
    }
    assert printed(created) == {
        "version": 0,
        "time": created.commit.time.isoformat(),
        "operation": "CREATE TABLE",
        "restored": None,
        "undone_by": None,
        "kind": None,
    }


def test_the_log_is_read_only_as_far_as_the_caller_reads_on(small: SmallTable, monkeypatch: pytest.MonkeyPatch) -> None:
    for start in range(0, 60, 10):
        small.commit(small.write(start, start + 10))
    read: list[int] = []
    entry_text = DeltaLog.text

    def noted(log: DeltaLog, reader: ObjectReader, version: int) -> bytes:
        read.append(version)
        return entry_text(log, reader, version)

    monkeypatch.setattr(DeltaLog, "text", noted)
    assert [entry.commit.version for entry in islice(history(small.table), 2)] == [6, 5]
    assert set(read) == {6, 5}


def test_a_topic_without_a_table_has_no_history(small: SmallTable, tmp_path: Path) -> None:
    with pytest.raises(TableMissing):
        history(replace(small.table, uri=str(tmp_path / "nowhere")))


def test_a_commit_that_does_not_say_so_changed_the_rows_of_the_files_that_it_removed() -> None:
    removed = [{}, {"dataChange": True}, {"dataChange": False}]
    assert [read_commit(1, [{"remove": remove}]).changed_rows for remove in removed] == [True, True, False]
