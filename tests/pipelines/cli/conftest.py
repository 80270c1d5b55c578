"""Runs commands on a lake with one small table."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipelines.cli.main import main
from tests.small_table import SmallTable


@pytest.fixture
def penstock(small: SmallTable, tmp_path: Path) -> Callable[..., Result]:
    """Runs a command. Two loads have been committed to the table."""
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n[topics.notes]\nformat = "text"\n')
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80), small.write(0, 20, partition=1))

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, ["--settings", str(settings), *arguments], input=stdin)

    return run
