"""The commands of the page about installing name extras that exist, and make constraints that pip can read."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.docs.pages import ROOT, blocks, run_blocks

PAGE = ROOT / "docs" / "install.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_INSTALLED = re.compile(rf"{PROJECT['name']}(?:\[([\w,-]+)\])?")


def test_the_constraints_are_the_versions_of_the_lock(tmp_path: Path) -> None:
    commands = [command for block in run_blocks(PAGE, "sh") for command in block.commands()]
    [command] = [command for command in commands if "constraints" in command]
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    lines = (tmp_path / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert len(pins) > 100
    assert [str(pin) for pin in pins if not str(pin.specifier).startswith("==") or pin.extras] == []


def test_the_commands_install_extras_that_exist() -> None:
    text = "".join(block.text for block in blocks(PAGE) if block.language == "sh")
    extras = {extra for match in _INSTALLED.finditer(text) for extra in (match[1] or "").split(",")}
    assert {"", "dagster", "all"} <= extras
    assert extras - PROJECT["optional-dependencies"].keys() == {""}
