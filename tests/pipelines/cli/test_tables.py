"""`penstock clean` only prints what it would do, unless --delete is given."""

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from pipelines.delta.delta_table import DeltaLakeTable
from resources.quantities import size
from resources.stores.lake import Lake
from tests.small_table import SmallTable

Penstock = Callable[..., Result]


@pytest.fixture
def orphan(small: SmallTable) -> Path:
    """A file that no commit names, ten days old."""
    file = Path(small.uri) / small.write(900, 950).files[0].path
    ten_days_ago = time.time() - 10 * 86400
    os.utime(file, (ten_days_ago, ten_days_ago))
    return file


def test_without_delete_nothing_changes_and_the_output_says_so(penstock: Penstock, orphan: Path) -> None:
    result = penstock("clean", "clicks")
    assert result.exit_code == 0
    header, line, hint = result.stdout.splitlines()
    assert "TO COLLECT" in header
    assert line.split()[:4] == ["clicks", "1", *size(orphan.stat().st_size).split()]
    assert hint == "nothing was changed; give --delete to delete these files"


def test_the_files_and_the_empty_table_of_a_failed_load_are_named(
    penstock: Penstock, small: SmallTable, tmp_path: Path
) -> None:  # fault U12
    small.write(900, 950)
    DeltaLakeTable.of(Lake(root=str(tmp_path / "lake")), "main", "views").snapshot()
    lines = penstock("clean", "--all").stdout.splitlines()
    assert lines[3:] == [
        "clicks: 1 files of failed loads or of loads in progress stay, because they are younger than keep_days",
        "views: the table has no rows, because its first load failed or found no records",
    ]


def test_with_delete_files_are_deleted_and_merged(penstock: Penstock, orphan: Path) -> None:
    [cleaned] = json.loads(penstock("clean", "--all", "--delete", "--json").stdout)["results"]
    assert (cleaned["cluster"], cleaned["topic"], cleaned["merged"], cleaned["larger"]) == ("main", "clicks", 3, 1)
    assert cleaned["collected"] == [f"date=2026-01-02/{orphan.name}"]
    assert not orphan.exists()
    assert penstock("verify", "clicks").exit_code == 0


def test_a_file_younger_than_keep_days_stays(penstock: Penstock, orphan: Path) -> None:
    assert penstock("clean", "clicks", "--delete", "--keep-days", "11").exit_code == 0
    assert orphan.exists()


def test_keep_days_of_zero_is_wrong_use(penstock: Penstock) -> None:
    assert penstock("clean", "clicks", "--keep-days", "0").exit_code == 2


def test_old_rows_are_retired_if_the_settings_say_so(penstock: Penstock, small: SmallTable, tmp_path: Path) -> None:
    """The rows of the table are in the folder of 2 January 2026."""
    settings = next(tmp_path.rglob("penstock.toml"))
    settings.write_text(f"{settings.read_text()}\n[topics.clicks]\nkeep_days = 5\n")
    first_kept = datetime.now(UTC).date() - timedelta(days=5)
    files, rows = len(small.handle().file_uris()), small.rows()
    result = penstock("clean", "clicks")
    said = f"clicks: {rows} rows from before {first_kept}, in {files} files of "
    assert any(line.startswith(said) and "would be taken out" in line for line in result.stdout.splitlines())
    assert result.stdout.splitlines()[-1] == "nothing was changed; give --delete to delete these files"
    assert small.rows() == rows
    [cleaned] = json.loads(penstock("clean", "clicks", "--delete", "--json").stdout)["results"]
    assert (cleaned["retired"]["rows"], cleaned["retired"]["before"]) == (rows, str(first_kept))
    assert (small.rows(), penstock("verify", "clicks").exit_code) == (0, 0)
    assert "retire" in penstock("history", "clicks").stdout


@pytest.mark.parametrize("command", ["verify", "clean"])
def test_a_lake_without_tables_is_an_error_and_not_proven(
    command: str, penstock: Penstock, small: SmallTable
) -> None:  # fault E07
    assert penstock(command, "--all").exit_code == 0
    Path(small.lake.root).rename(Path(small.lake.root).with_name("unmounted"))
    lost = penstock(command, "--all")
    assert lost.exit_code == 1
    assert f"the lake {small.lake.root} has no table of the cluster main: load a topic first" in lost.stderr
    assert "PS-410" in lost.stderr


def test_a_table_that_is_gone_since_its_last_proof_is_an_error(
    penstock: Penstock, small: SmallTable, tmp_path: Path
) -> None:  # fault E07
    views = DeltaLakeTable.of(small.lake, "main", "views")
    views.snapshot()
    assert penstock("verify", "--all").exit_code == 0
    Path(views.uri).rename(tmp_path / "views")
    lost = penstock("verify", "--all")
    assert lost.exit_code == 1
    assert "TableMissing: the topic had a table when it was verified last, and has none now" in lost.stderr
    assert "proven clicks: 10 rows" in lost.stdout
    settings = tmp_path / "penstock.toml"
    settings.write_text(settings.read_text() + '[topics]\ndeny = "views"\n')
    assert penstock("verify", "--all").exit_code == 0
