"""The result of the last proof of a table is kept in the lake. It never affects the proof."""

from pathlib import Path
from threading import Barrier, Event, Lock
from time import monotonic, sleep
from typing import Any
from unittest.mock import ANY

import pytest

from pipelines.formats.tables import lake_table
from pipelines.table.lake_table import LakeTable
from pipelines.verify import verify as verifying
from pipelines.verify.last_proof import LastProof, LastProofs
from pipelines.verify.verify import Proof, verify
from resources.stores.lake import Lake, tables_at_once
from tests.small_table import SmallTable

OK = LastProof(time_ms=ANY, seconds=ANY, proven=True, rows=10)


def test_a_proof_is_read_by_others_and_replaced_by_the_next(small: SmallTable) -> None:
    facts = small.write(0, 100)
    small.commit(facts)
    proof, warnings = LastProofs(small.lake, "main").prove(small.table, verify)
    assert (proof.proven, warnings) == (True, ())
    assert LastProofs(small.lake, "main").read() == {"clicks": OK}
    assert LastProofs(small.lake, "other").read() == {}
    (Path(small.uri) / facts.files[0].path).unlink()
    LastProofs(small.lake, "main").prove(small.table, verify, deep=True)
    last = LastProofs(small.lake, "main").read()["clicks"]
    assert (last.proven, last.deep, last.missing, last.problems > 0) == (False, True, 10, True)


def test_a_check_that_fails_is_no_proof(small: SmallTable) -> None:
    def fail(_table: LakeTable) -> Proof:
        raise ZeroDivisionError

    proof, warnings = LastProofs(small.lake, "main").prove(small.table, fail)
    assert (proof.proven, warnings) == (False, ())
    assert not LastProofs(small.lake, "main").read()["clicks"].proven


def test_a_proof_that_cannot_be_kept_is_still_a_proof(small: SmallTable, tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "main" / "_penstock"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file, not a folder")
    proof, [warning] = LastProofs(small.lake, "main").prove(small.table, verify)
    assert proof.proven
    assert warning.startswith("`penstock metrics` may show an old proof of this table: ")


def test_tables_are_proven_at_the_same_time_and_in_their_order(tmp_path: Path) -> None:
    """The first proofs wait for one another, so they must run at the same time; the first one ends last."""
    lake = Lake(root=str(tmp_path))
    tables = [lake_table(lake, "main", f"topic-{number}") for number in range(20)]
    together, last = Barrier(tables_at_once(lake.root)), tables_at_once(lake.root) - 1
    second_ended = Event()

    def check(table: LakeTable) -> Proof:
        number = tables.index(table)
        if number <= last:
            together.wait(timeout=60)
        if number == 0:
            second_ended.wait(timeout=60)
        if number == 1:
            second_ended.set()
        return Proof(topic=str(table.where.topic), table=table.uri)

    proofs = [proof for proof, _ in LastProofs(lake, "main").prove_all(tables, check)]
    assert [proof.table for proof in proofs] == [table.uri for table in tables]
    assert {proof.failure for proof in proofs} == {None}
    assert LastProofs(lake, "main").read().keys() == {table.where.topic for table in tables}


@pytest.mark.parametrize(("large_bytes", "at_once"), [(0, 2), (10**9, 6)])
def test_two_large_tables_count_their_rows_at_a_time(
    large_bytes: int, at_once: int, small: SmallTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads that count wait until as many count as may, and a moment longer."""
    small.commit(small.write(0, 100))
    counting, most, lock = 0, 0, Lock()
    count = verifying._Counts.count

    def watched(*arguments: Any) -> None:
        nonlocal counting, most
        with lock:
            counting += 1
            most = max(most, counting)
        deadline_s = monotonic() + 30
        while most < at_once and monotonic() < deadline_s:
            sleep(0.001)
        sleep(0.05)
        count(*arguments)
        with lock:
            counting -= 1

    monkeypatch.setattr(verifying, "_LARGE_BYTES", large_bytes)
    monkeypatch.setattr(verifying._Counts, "count", watched)
    proofs = list(LastProofs(small.lake, "main").prove_all([small.table] * 6, verify))
    assert all(proof.proven for proof, _ in proofs)
    assert most == at_once


def test_a_damaged_file_is_left_out(small: SmallTable) -> None:
    LastProofs(small.lake, "main").prove(small.table, verify)
    [file] = Path(small.lake.root).rglob("last_proofs/*.json")
    file.write_text("{")
    assert LastProofs(small.lake, "main").read() == {}
