"""Rows that were taken out are proven to be gone, and no others; each broken rule is a problem."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause
from pipelines.ledger.exact_offsets import ExactOffsets
from pipelines.table.exact_sets import ExactSets, store_exact
from pipelines.verify.exact_file import exact_problems
from pipelines.verify.verify import verify
from tests.pipelines.loaded import call_compaction
from tests.pipelines.taken_out import rows_of, take_out, with_exact
from tests.small_table import SmallTable

OF_07, ONE = BrokerPartition(0, 0), BrokerPartition(None, 0)


def modern(small: SmallTable, *, stop: int = 100) -> None:
    """Load rows as from 0.8 on: one for each offset, without a broker."""
    columns = {"offset": pa.array(range(stop), pa.int64()), "value": pa.array([b"x"] * stop)}
    small.commit(small.write_columns(OffsetRange(ONE, 0, stop), columns, broker=None, inner=None))


def problems(small: SmallTable) -> tuple[str, ...]:
    return verify(small.table).problems


def test_a_table_is_proven_without_the_rows_of_its_sets(small: SmallTable) -> None:
    modern(small)
    take_out(small.table, ONE, rows_of(3, 4, 50))
    take_out(small.table, ONE, rows_of(7), cause=ExactCause.FILTERED)
    take_out(small.table, ONE, rows_of(99))
    proof = verify(small.table)
    assert (proof.problems, small.rows()) == ((), 95)
    assert proof.partitions[0].gaps == {"erased": 4, "filtered": 1}


def test_a_set_in_a_file_is_read_for_the_proof(small: SmallTable) -> None:
    modern(small, stop=2000)
    take_out(small.table, ONE, rows_of(*range(0, 2000, 3)))
    assert list(Path(small.uri).glob("_offsets/*"))
    assert problems(small) == ()


def test_a_lost_row_is_missing_and_not_erased(small: SmallTable) -> None:  # fault P17
    modern(small)
    take_out(small.table, ONE, rows_of(3, 4))
    small.handle().delete('"offset" = 5')
    call_compaction(small.uri)
    assert problems(small) == ("partition 0 [0, 100) holds 97 rows, but its commit counted 98",)
    assert verify(small.table).partitions[0].missing == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"\x01\x00")])
def test_a_lost_or_damaged_set_proves_nothing(  # fault P16
    damage: Callable[[Path], None], small: SmallTable
) -> None:
    modern(small, stop=2000)
    take_out(small.table, ONE, rows_of(*range(0, 2000, 3)))
    [file] = Path(small.uri).glob("_offsets/*")
    damage(file)
    [problem] = problems(small)
    assert problem.startswith(f"partition 0 [0, 2000): the file _offsets/{file.name}")


def test_a_row_with_an_offset_of_the_set_is_a_problem(small: SmallTable) -> None:  # fault P16
    """The numbers are right, but the row of the neighbour was taken out."""
    modern(small)
    take_out(small.table, ONE, rows_of(3, 40), gone=[3, 41])
    assert problems(small) == ("partition 0 [0, 100) holds 1 rows that were erased, filtered or retired",)


def test_in_0_7_one_of_two_messages_at_an_offset_is_taken_out(small: SmallTable) -> None:  # fault P16
    columns = {"offset": pa.array([0, 10, 10, 20], pa.int64()), "inner": pa.array([0, 0, 1, 0], pa.int32())}
    columns["value"] = pa.array([b"x"] * 4)
    small.commit(small.write_columns(OffsetRange(OF_07, 0, 30), columns))
    take_out(small.table, OF_07, rows_of(10, inner=1), inner=1)
    assert (problems(small), small.rows()) == ((), 3)
    take_out(small.table, OF_07, rows_of(20, inner=0), gone=[10], inner=0)
    assert problems(small) == ("partition 0-0 [0, 30) holds 1 rows that were erased, filtered or retired",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gaps": {"erased": 3}}, "it counts 3 erased, but the set of these has 2 within the range"),
        ({"gaps": {"erased": 2, "retired": 1}}, "it counts 1 retired, but the set of these has 0 within the range"),
        ({"gaps": {}}, "it counts 0 erased, but the set of these has 2 within the range"),
        ({"exact": {}}, "it counts 2 erased, but the set of these has 0 within the range"),
        ({"rows": 97}, "its 97 rows and 2 offsets in gaps do not add up to its size"),
    ],
)
def test_the_numbers_of_an_entry_must_be_those_of_its_sets(
    change: dict[str, object], reason: str, small: SmallTable
) -> None:
    modern(small)
    take_out(small.table, ONE, rows_of(3, 4))
    log = Path(small.uri) / "_delta_log" / f"{DeltaTable(small.uri).version():020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            entry = json.loads(line["commitInfo"]["penstock"])
            entry["ranges"][0].update(change)
            line["commitInfo"]["penstock"] = json.dumps(entry)
    log.write_text("\n".join(map(json.dumps, lines)))
    assert any(reason in problem for problem in problems(small))


def of_sets(**offsets: ExactOffsets) -> list[str]:
    committed = CommittedRange(offsets=OffsetRange(ONE, 0, 10), rows=8)
    sets = {ExactCause(cause): own for cause, own in offsets.items()}
    changed = with_exact(committed, sets, lambda own: store_exact("", {}, own))
    return list(exact_problems(changed, ExactSets.at("", {}).within(changed)))


def test_two_causes_never_share_an_offset() -> None:
    """Otherwise one lost row could be counted twice."""
    assert of_sets(erased=rows_of(1), filtered=rows_of(2)) == []
    assert of_sets(erased=rows_of(1), filtered=rows_of(1)) == ["the sets of erased, filtered share offsets"]
    assert of_sets(erased=rows_of(1, inner=0)) == ["the set of erased is one of another version of Kafka"]


def test_sets_are_searched_in_a_file_and_not_in_memory(small: SmallTable, monkeypatch: pytest.MonkeyPatch) -> None:
    modern(small, stop=2000)
    take_out(small.table, ONE, rows_of(*range(0, 2000, 3)))
    mapped: list[tuple[int, ...]] = []
    memmap = np.memmap

    def noted(*args: object, shape: tuple[int, ...]) -> object:
        mapped.append(shape)
        return memmap(*args, shape=shape)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "memmap", noted)
    assert problems(small) == ()
    assert set(mapped) == {(667, 2)}
