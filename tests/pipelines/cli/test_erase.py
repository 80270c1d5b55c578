"""`penstock erase` counts and erases rows, and says no value of them; without a clear choice it does nothing."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.cli.main import main
from pipelines.verify.verify import verify
from tests.pipelines.maintenance.old_rows import DatedTable
from tests.small_table import SmallTable

A = BrokerPartition(0, 0)


@pytest.fixture
def settings(small: SmallTable, tmp_path: Path) -> Path:
    values = [b"one", b"zelda", b"three", b"zelda"]
    columns = {"offset": pa.array(range(0, 40, 10), pa.int64()), "value": pa.array(values)}
    small.commit(small.write_columns(OffsetRange(A, 0, 40), columns))
    path = tmp_path / "penstock.toml"
    path.write_text(f'lake = "{small.lake.root}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    return path


def run(settings: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--settings", str(settings), "erase", "clicks", *arguments])


def test_rows_are_counted_and_erased(settings: Path, small: SmallTable) -> None:
    where = ("--where", "value = 'zelda'")
    counted = run(settings, *where, "--dry-run")
    assert (counted.exit_code, small.rows()) == (0, 4)
    assert "2 rows would be erased, in 1 of 1 file; version 1" in counted.output
    unsure = run(settings, *where)
    assert (unsure.exit_code, small.rows()) == (2, 4)
    erased = run(settings, *where, "--yes", "--json")
    [record] = json.loads(erased.stdout)["results"]
    assert (erased.exit_code, record["rows"], record["version"]) == (0, 2, 2)
    assert record["partitions"] == [{"broker": 0, "partition": 0, "rows": 2}]
    assert (small.rows(), verify(small.table).problems) == (2, ())
    for result in (counted, unsure, erased):
        assert "zelda" not in result.output


def test_values_of_a_file_are_erased(settings: Path, small: SmallTable, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("zelda\n\nnobody\n")
    result = run(settings, "--file", str(ids), "--column", "value", "--yes")
    assert (result.exit_code, small.rows()) == (0, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--where", "value = 'zelda'", "--column", "value"),
        ("--column", "value"),
        ("--where", "value = zelda"),
        ("--missing", "--where", "value = 'zelda'"),
        ("--missing", "--finish"),
    ],
)
def test_a_wrong_use_changes_nothing(arguments: tuple[str, ...], settings: Path, small: SmallTable) -> None:
    result = run(settings, *arguments, "--yes")
    assert (result.exit_code, small.rows()) == (2, 4)
    assert "zelda" not in result.output


@pytest.mark.slow
def test_missing_rows_are_counted_and_recorded(tmp_path: Path) -> None:  # fault P24
    dated = DatedTable(tmp_path / "lake")
    dated.commit(dated.records(0, 10, without={2}))
    dated.handle().delete('"offset" = 5')
    path = tmp_path / "penstock.toml"
    path.write_text(f'lake = "{dated.lake.root}"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    counted = run(path, "--missing", "--dry-run")
    assert (counted.exit_code, dated.handle().version()) == (0, 2)
    assert "clicks: removed by version 2, DELETE by delta-rs:py-" in counted.output
    assert "clicks: 1 other offsets had no row before, and count as erased, too" in counted.output
    assert "clicks: 1 missing rows would be recorded as erased; version 2" in counted.output
    unsure = run(path, "--missing")
    assert (unsure.exit_code, dated.handle().version()) == (2, 2)
    recorded = run(path, "--missing", "--request", "T-4711", "--yes", "--json")
    [record] = json.loads(recorded.stdout)["results"]
    assert (recorded.exit_code, record["rows"], record["gaps"], record["version"]) == (0, 1, 1, 3)
    assert record["partitions"] == [{"broker": None, "partition": 0, "rows": 1}]
    assert "clicks: 0 missing rows recorded as erased; version 3" in run(path, "--missing", "--yes").output
    assert dated.problems() == ()
    history = CliRunner().invoke(main, ["--settings", str(path), "history", "clicks"]).output
    assert "request T-4711" in history
    assert "missing = erase: partition 0 [2, 6), removed by version 2, DELETE by delta-rs:py-" in history
    dated.handle().update(updates={"key": "value"}, predicate='"offset" = 4')
    refused = run(path, "--missing", "--yes")
    assert (refused.exit_code, "EraseRefused: more is wrong with the table than missing rows" in refused.output) == (
        1,
        True,
    )


def certificate(settings: Path, *arguments: str) -> Result:
    return run(settings, "--certificate", "T-4711", *arguments)


@pytest.mark.slow
def test_a_certificate_is_printed_and_ends_with_what_is_open(settings: Path, small: SmallTable) -> None:  # fault Y13
    where = ("--where", "value = 'zelda'")
    erased = run(settings, *where, "--yes", "--request", "T-4711")
    shown = " ".join(erased.output.split())
    assert "`penstock erase clicks --finish` deletes them now" in shown
    assert "the request is T-4711: `penstock erase clicks --certificate T-4711` says what is still open" in shown
    waiting = certificate(settings, *where)
    assert waiting.exit_code == 5
    assert "1 file from before the erasure will be deleted until" in waiting.output
    assert "\nopen clicks: until 20" in waiting.output
    assert run(settings, "--finish").exit_code == 0
    again = run(settings, "--finish")
    assert (again.exit_code, again.stdout) == (0, "clicks: no file from before an erasure or a rewrite is left\n")
    complete = certificate(settings, *where)
    assert complete.exit_code == 0, complete.output
    assert "Erased: 2 rows (2 of partition 0-0)" in " ".join(complete.output.split())
    assert complete.output.splitlines()[-1] == "complete clicks: Penstock has no copy of the rows any more"
    assert "Not of Penstock: Kafka: the brokers were not asked" in complete.output
    by_offsets = certificate(settings)
    assert by_offsets.exit_code == 0
    assert "give the values to search for them" in by_offsets.output
    [record] = json.loads(certificate(settings, *where, "--json").stdout)["results"]
    assert (record["complete"], record["searched"], record["erasures"][0]["rows"]) == (True, 1, 2)
    for result in (erased, waiting, complete, by_offsets):
        assert "zelda" not in result.output


def test_a_request_is_no_address(settings: Path, small: SmallTable) -> None:
    result = run(settings, "--where", "value = 'zelda'", "--yes", "--request", "zelda@a.org")
    assert (result.exit_code, small.rows()) == (2, 4)
    assert "zelda" not in result.output
    assert "no erasure with the request" in run(settings, "--certificate", "T-1").output


def test_a_condition_that_does_not_fit_has_its_own_code(settings: Path) -> None:
    result = run(settings, "--where", "email = 'zelda'", "--yes")
    assert result.exit_code != 0
    assert "the table has no column email" in result.output
    assert "zelda" not in result.output
