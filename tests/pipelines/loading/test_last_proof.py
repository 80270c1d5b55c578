"""The result of the last proof of a table is kept in the lake. It never affects the proof."""

from pathlib import Path
from unittest.mock import ANY

from pipelines.loading.last_proof import LastProof, LastProofs
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import Proof, verify
from tests.small_table import SmallTable

OK = LastProof(time_ms=ANY, seconds=ANY, proven=True, rows=10)


def test_a_proof_is_read_by_others_and_replaced_by_the_next(small: SmallTable) -> None:
    facts = small.write(0, 100)
    small.commit(facts)
    proof, warnings = LastProofs(small.lake, "main").prove(small.table, verify)
    assert (proof.proven, warnings) == (True, ())
    assert LastProofs(small.lake, "main").read() == {"clicks": OK}
    assert LastProofs(small.lake, "other").read() == {}
    (Path(small.uri) / str(facts.path)).unlink()
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


def test_a_damaged_file_is_left_out(small: SmallTable) -> None:
    LastProofs(small.lake, "main").prove(small.table, verify)
    [file] = Path(small.lake.root).rglob("last_proofs/*.json")
    file.write_text("{")
    assert LastProofs(small.lake, "main").read() == {}
