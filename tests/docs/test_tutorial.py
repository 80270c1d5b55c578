"""The tutorial works from top to bottom in an empty folder, and every command prints what the page shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from resources.settings.settings import PATH_VARIABLE
from tests.docs.pages import ROOT
from tests.docs.stories import check_shown, run, steps
from tests.docs.tutorial_program import PAGE, installed_extras, terminal
from tests.ui.waiting import until


@pytest.mark.slow
def test_the_tutorial_works_from_top_to_bottom_with_the_packages_that_it_installs(tmp_path: Path) -> None:
    """What Dagster's daemon does happens in the program; the next test starts the daemon itself."""
    assert len({step.heading for step in steps(PAGE)}) > 8
    assert "spark" not in installed_extras()
    environment = {name: value for name, value in os.environ.items() if name != PATH_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.tutorial_program"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_dagster_loads_the_topic_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's own programs start as the page says, find the topic, and load it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    with terminal({}) as shell:
        for step in steps(PAGE):
            for command, _ in step.commands():
                if command.startswith("penstock history orders --limit"):
                    until(lambda: DeltaTable("lake/main/orders").version() == 4, "Dagster loads the topic")
            run(step, shell.execute)


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("orders 3 rows\n", "orders  3  rows\n"),
        ("at 2026-11-26 12:39:27\n", "at 2026-11-27 01:00:00\n"),
        ("...\nend\n", "one\ntwo\nend\n"),
        ("run 51d1ec74 took 2.7 s\n", "run 6bbe8d9a took 1 min 13 s\n"),
        ("227 bytes\n", "230 bytes\n"),
    ],
)
def test_what_differs_between_runs_may_differ_from_the_page(shown: str, output: str) -> None:
    check_shown("penstock", shown, output)


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("orders 3 rows\n", "orders 4 rows\n"),
        ("orders\n", "orders\nviews\n"),
        ("orders\nviews\n", "orders\n"),
        ("begin\n...\nend\n", "begin\ntwo\n"),
        ("orders\n", ""),
    ],
)
def test_another_output_than_the_page_shows_is_an_error(shown: str, output: str) -> None:
    with pytest.raises(AssertionError, match="but the page shows"):
        check_shown("penstock", shown, output)
