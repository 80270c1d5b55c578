"""A topic was created again, and its table has rows of the former one: those of a person go from both."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from kafka_io.model import BrokerPartition
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.commit.commit import LoadChange, commit
from pipelines.delta.delta_log_segment import commit_file
from pipelines.identity.identity import table_state
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Increment, OnReplaced, apply_increment
from pipelines.layout.conditions import parse_condition
from pipelines.ledger.incarnations import incarnations
from pipelines.ledger.ledger import LedgerEntry
from pipelines.maintenance.clean import clean
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erase_result import TopicErase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.maintenance.history import PrintedCommit, history
from pipelines.maintenance.missing import MissingRequest, erase_missing
from pipelines.maintenance.rewind import plan_rewind
from pipelines.state_tables.update import update_state
from pipelines.verify.verify import verify
from resources.errors import EntryUnknown, ErasedSince
from resources.settings.choices import Choices
from tests.pipelines.increments.keyed_tables import BY_KEY, KeyedHistory
from tests.pipelines.maintenance.old_rows import DatedTable, day

pytestmark = pytest.mark.slow  # each test fills a table and changes it

ONE = BrokerPartition(None, 0)


def created_again(table: DatedTable, stop: int) -> None:
    """The topic is created again, and the records [0, stop) of the new one are loaded into the same table."""
    snapshot = table.table.snapshot()
    table.topic = replace(table.topic, incarnation=f"{table.topic.incarnation}-again")
    state = table_state(snapshot, table.topic, choices=Choices(on_recreated="restart"))
    commit(table.table, snapshot, LoadChange(state=state, facts=(table.records(0, stop),), run="restart"))


@pytest.fixture
def dated(tmp_path: Path) -> DatedTable:
    """Twenty records of the first topic, ten of the second one, and thirty of the present one."""
    table = DatedTable(tmp_path / "lake")
    table.commit(table.records(0, 20))
    created_again(table, 10)
    created_again(table, 30)
    return table


def erased(table: DatedTable, where: str, **options: Any) -> TopicErase:
    return erase(EraseRequest(table=table.table, condition=parse_condition(where), run="erasure", **options))


def left(table: DatedTable) -> dict[str, tuple[int, dict[str, int]]]:
    """The number of rows of each incarnation, and of its gaps, as `verify` proves them."""
    proof = verify(table.table)
    assert proof.problems == ()
    return {part.incarnation: (part.rows, part.gaps) for part in proof.partitions}


def entry(table: DatedTable) -> LedgerEntry:
    newest = table.table.snapshot().entry
    assert newest is not None
    return newest


def sets(table: DatedTable) -> dict[str, list[int]]:
    """The offsets of the exact sets of each incarnation that has some."""
    own: dict[str, list[int]] = {}
    for each in incarnations(table.table.entries(table.table.snapshot())):
        for part in each.ranges:
            for offsets in table.table.exact_sets(part).values():
                own.setdefault(each.topic.incarnation, []).extend(offsets.firsts.tolist())
    return own


@pytest.mark.parametrize("inline_bytes", [0, 256])
def test_rows_of_all_incarnations_are_erased_in_one_commit(  # fault Y16
    inline_bytes: int, dated: DatedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.table.exact_sets._MAX_INLINE_BYTES", inline_bytes)
    result = erased(dated, "offset in (3, 15)", name="T-1")
    assert (result.failure, result.rows, result.version, result.files) == (None, 5, 4, 3)
    assert left(dated) == {
        "7-again-again": (28, {"erased": 2}),
        "7-again": (9, {"erased": 1}),
        "7": (18, {"erased": 2}),
    }
    assert sets(dated) == {"7-again-again": [3, 15], "7-again": [3], "7": [3, 15]}
    clean(dated.table, keep=timedelta(), target_bytes=1, dry_run=False)
    assert left(dated)["7"] == (18, {"erased": 2})
    dated.commit(dated.records(30, 40))
    assert left(dated)["7-again-again"] == (38, {"erased": 2})


def test_a_set_of_one_incarnation_does_not_touch_the_same_offsets_of_another(dated: DatedTable) -> None:  # fault Y16
    """The first topic alone had a person at offset 3."""
    loaded_us = incarnations(dated.table.entries(dated.table.snapshot()))[-1].ranges[0].loaded_at_us
    time = dated.handle().to_pyarrow_table(filters=[("offset", "=", 3)]).sort_by("loaded_at").column("loaded_at")[0]
    assert time.value == loaded_us
    assert erased(dated, f"offset = 3 and loaded_at = '{time.as_py().isoformat()}'").rows == 1
    assert sets(dated) == {"7": [3]}
    assert left(dated) == {"7-again-again": (30, {}), "7-again": (10, {}), "7": (19, {"erased": 1})}
    assert entry(dated).ranges == ()
    assert dated.offsets().count(3) == 2


def test_a_set_that_is_of_another_incarnation_is_found_by_verify(dated: DatedTable) -> None:  # fault Y16
    """The same entry, with the ranges of the first topic in the place of those of the second one."""
    erased(dated, "offset = 3")
    path = Path(dated.uri) / commit_file(4)
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    stored = json.loads(lines[0]["commitInfo"]["penstock"])
    second, first = stored["former"]
    second["topic"], first["topic"] = first["topic"], second["topic"]
    lines[0]["commitInfo"]["penstock"] = json.dumps(stored)
    path.write_text("\n".join(map(json.dumps, lines)))
    assert verify(dated.table).problems
    path.write_text(text)
    assert verify(dated.table).problems == ()


def test_erasures_of_former_incarnations_follow_each_other(dated: DatedTable) -> None:
    for where in ("offset = 3", "offset = 12", "offset = 9", "offset < 2"):
        assert erased(dated, where).failure is None
    assert sets(dated)["7"] == [0, 3, 9, 12]  # where runs begin
    assert left(dated) == {
        "7-again-again": (25, {"erased": 5}),
        "7-again": (6, {"erased": 4}),
        "7": (15, {"erased": 5}),
    }
    with pytest.raises(ErasedSince):
        plan_rewind(dated.table, 3, run="rewind")


def test_old_rows_of_a_former_incarnation_are_not_retired_and_an_erasure_by_day_takes_them_out(
    tmp_path: Path,
) -> None:  # fault Y16
    table = DatedTable(tmp_path / "lake")
    table.commit(table.records(0, 20))
    table.today = 1
    created_again(table, 10)
    table.today = 2
    table.commit(table.records(10, 20))
    retired = table.retire(2)
    assert (retired.files, retired.rows, retired.kept) == (1, 10, 1)
    assert left(table) == {"7-again": (10, {"retired": 10}), "7": (20, {})}
    assert erased(table, f"date < '{day(2)}'").rows == 20
    assert left(table) == {"7-again": (10, {"retired": 10}), "7": (0, {"erased": 20})}


def test_a_redecode_or_a_load_after_it_keeps_the_order_of_incarnations(dated: DatedTable) -> None:
    erased(dated, "offset = 12")  # the second topic has no such row
    names = [each.topic.incarnation for each in incarnations(dated.table.entries(dated.table.snapshot()))]
    assert names == ["7-again-again", "7-again", "7"]


def test_missing_rows_of_a_former_incarnation_are_recorded(dated: DatedTable) -> None:  # fault P24
    dated.handle().delete('"offset" in (4, 14)')
    result = erase_missing(MissingRequest(table=dated.table, run="missing", name="T-1"))
    assert (result.failure, result.rows) == (None, 5)
    assert sets(dated) == {"7-again-again": [4, 14], "7-again": [4], "7": [4, 14]}
    assert left(dated)["7"] == (18, {"erased": 2})


def test_history_counts_the_ranges_of_all_incarnations(dated: DatedTable) -> None:
    erased(dated, "offset = 3")
    newest = next(history(dated.table))
    assert (newest.rows, newest.gaps) == (57, {"erased": 3})
    printed = newest.printed()
    assert isinstance(printed, PrintedCommit)
    assert [own["topic"]["incarnation"] for own in printed.former] == ["7-again", "7"]


def test_an_entry_with_former_incarnations_is_read_as_it_was_written(dated: DatedTable) -> None:
    erased(dated, "offset = 3", name="T-1")
    written = entry(dated)
    assert LedgerEntry.from_json(written.to_json()) == written
    assert written.erasure.request == "T-1"
    stored = json.loads(written.to_json())
    stored["former"][0]["more"] = 1
    with pytest.raises(EntryUnknown, match="unknown fields: more"):
        LedgerEntry.from_json(json.dumps(stored))


def test_a_certificate_counts_and_searches_rows_of_all_incarnations(dated: DatedTable) -> None:  # faults Y13, Y16
    erased(dated, "offset in (3, 15)", name="T-1")
    finish_erasures(dated.table, older_than=timedelta(), dry_run=False)

    def made() -> Any:
        return certify(CertificateRequest(table=dated.table, request="T-1", erase_days=7))

    certificate = made()
    [erasure] = certificate.erasures
    assert (erasure.rows, [(part.partition, part.rows) for part in erasure.partitions]) == (5, [(0, 5)])
    assert certificate.complete, certificate.tasks


@pytest.mark.parametrize("seed", range(3))
def test_a_state_table_follows(seed: int, tmp_path: Path) -> None:
    """The key c is only in rows of the former topic, and the newest row of b is one of them."""
    table = KeyedHistory(tmp_path / "lake", Random(seed))
    table.load(("a", "1"), ("b", "1"), ("c", "1"), ("b", "secret"), ("c", "secret"))
    table.happen("restart")
    table.load(("a", "secret"), ("d", "9"))
    update_state(table.table, BY_KEY)
    assert (
        erase(
            EraseRequest(table=table.table, condition=parse_condition("value = 'secret' or key = 'd'"), run="erasure")
        ).rows
        == 4
    )
    update_state(table.table, BY_KEY)
    assert table.state() == table.expected()
    values = {row["key"]: row["value"] for row in table.state() if row["key"] in {b"a", b"b", b"c", b"d"}}
    assert values == {b"a": b"1", b"b": b"1", b"c": b"1"}


# Consumers.


def copied(increment: Increment) -> Any:
    return increment.arrow(["offset", "loaded_at"])


def follow(table: DatedTable, output: DeltaOutput, on_replaced: OnReplaced = "apply") -> Any:
    return apply_increment(table.table, copied, consumer="c", into=output, on_replaced=on_replaced)


def delivered(output: DeltaOutput) -> list[tuple[int, Any]]:
    return places(DeltaTable(output.uri))


def places(handle: DeltaTable) -> list[tuple[int, Any]]:
    rows = handle.to_pyarrow_table()
    return sorted(zip(rows.column("offset").to_pylist(), rows.column("loaded_at").to_pylist(), strict=True))


@pytest.mark.parametrize("on_replaced", ["apply", "ignore"])
@pytest.mark.parametrize("most", [0, 5000])
@pytest.mark.parametrize("since", [1, 2, 3])
def test_outputs_lose_rows_of_all_incarnations(  # faults P21, Y16
    since: int, most: int, on_replaced: OnReplaced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer has seen the first topic only, or two of them, or all. If few places are named, rows come again."""
    monkeypatch.setattr("pipelines.commit.erasure.MAX_WRITTEN", most)
    table, output = DatedTable(tmp_path / "lake"), DeltaOutput(uri=str(tmp_path / "out"))
    for load in range(3):
        if load:
            created_again(table, (10, 30)[load - 1])
        else:
            table.commit(table.records(0, 20))
        if load + 1 == since:
            follow(table, output, on_replaced)
    assert erased(table, "offset in (2, 5, 15)").rows == 8
    facts = follow(table, output, on_replaced)
    assert facts["erased"] >= (3, 5, 8)[since - 1]
    assert delivered(output) == places(table.handle())
    assert follow(table, output, on_replaced) is None
    new = DeltaOutput(uri=str(tmp_path / "new"))
    follow(table, new, on_replaced)
    assert delivered(new) == places(table.handle())
