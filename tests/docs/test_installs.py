"""Pages that use Dagster name all that has to be installed: a process with nothing else loads their definitions."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from resources.settings.settings import PATH_VARIABLE
from tests.docs.pages import ROOT
from tests.thorough import also

pytestmark = pytest.mark.slow  # processes that import Dagster
EXAMPLES = ROOT / "docs" / "examples"
PROGRAM = """
import sys
from tests.core_program import hide_other_packages
hide_other_packages(frozenset({extras!r}), {beside!r})
{use}
assert defs.resolve_asset_graph() is not None
"""


def requirements_of_project(file: Path) -> list[str]:
    """What `pip install -e .` installs."""
    dependencies: list[str] = tomllib.loads(file.read_text())["project"]["dependencies"]
    return dependencies


def requirements_of_page(file: Path) -> list[str]:
    """What the first `pip install` of a page installs."""
    found = re.search(r"pip install ([^`\n]*)", file.read_text())
    assert found is not None
    return found[1].replace("'", "").split()


@pytest.mark.parametrize(
    ("file", "requirements", "use"),
    [
        (
            EXAMPLES / "components" / "pyproject.toml",
            requirements_of_project,
            "sys.path.insert(0, 'src'); from shop.definitions import defs as load; defs = load()",
        ),
        (
            EXAMPLES / "python" / "README.md",
            requirements_of_page,
            "import runpy; defs = runpy.run_path('definitions.py')['defs']",
        ),
        also(
            ROOT / "docs" / "dagster.md",
            requirements_of_page,
            "import runpy; defs = runpy.run_module('pipelines.definitions')['defs']",
        ),
        (ROOT / "docs" / "dagster.md", requirements_of_page, "from penstock import defs"),
    ],
    ids=["components", "python", "dagster", "dagster, by another name"],
)
def test_definitions_load_with_what_the_page_installs(
    file: Path, requirements: Callable[[Path], list[str]], use: str, tmp_path: Path
) -> None:  # fault F01
    needed = [Requirement(text) for text in requirements(file)]
    extras = {extra for requirement in needed if requirement.name == "penstock-etl" for extra in requirement.extras}
    beside = [requirement.name for requirement in needed if requirement.name != "penstock-etl"]
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "b:9092"\n')
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(extras=extras, beside=beside, use=use)],
        cwd=file.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), PATH_VARIABLE: str(settings), "DAGSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
