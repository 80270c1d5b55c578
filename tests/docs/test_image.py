"""The instructions of the Dockerfile are executed, in a folder instead of an image: they install what it starts."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.docs.deployments import stages
from tests.docs.pages import ROOT

pytestmark = pytest.mark.thorough
FOLDERS = re.compile(r"(?<![\w.])/(opt|wheel|source|var/lib/penstock|var/cache/penstock|etc/penstock)\b")
OF_ROOT = re.compile(r"groupadd [^&]*&& useradd [^&]*&& | --(?:owner|group)=\w+")
"""Users and owners are those of the test: only root can make others."""


class Image:
    """A folder in which instructions are executed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{os.defpath}"
        self._place = folder

    def inside(self, text: str) -> str:
        """A text whose paths are in the folder."""
        return FOLDERS.sub(rf"{self.folder}/\1", OF_ROOT.sub("", text))

    def build(self, stage: str, *, extras: str) -> None:
        """Execute the instructions of a stage. All stages share the folder, so files of others are there."""
        self._environment |= {"EXTRAS": extras}
        for name, text in stages()[stage]:
            match name:
                case "RUN":
                    self.run(["/bin/sh", "-euc", self.inside(text)])
                case "WORKDIR":
                    self._place = Path(self.inside(text))
                    self._place.mkdir(parents=True, exist_ok=True)
                case "COPY" if not text.startswith("--from="):
                    self._copy(*text.split())
                case "ENV":
                    for variable, value in re.findall(r"(\w+)=(\S+)", text):
                        old = self._environment["PATH"]
                        self._environment[variable] = self.inside(value).replace("$PATH", old)

    def _copy(self, *words: str) -> None:
        *sources, target = words
        for source in sources:
            place = self._place / (source if target == "./" else target)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place)

    def run(self, command: Sequence[str]) -> str:
        """The output of a command, which must succeed."""
        completed = subprocess.run(
            command, cwd=self._place, env=self._environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        return completed.stdout


@pytest.mark.timeout(900)
def test_the_core_is_installed_by_the_instructions_of_its_image(tmp_path: Path) -> None:
    image = Image(tmp_path)
    image.build("build", extras="")
    image.build("core", extras="")
    instructions = dict(stages()["core"])
    entry, command = (json.loads(instructions[name]) for name in ("ENTRYPOINT", "CMD"))
    assert "verify" in image.run([*entry, *command])
    settings = tmp_path / "etc" / "penstock" / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    health = image.run(json.loads(instructions["HEALTHCHECK"].partition("CMD")[2]))
    assert '"level": "info"' in health or f"ok     settings: {settings}" in health
    assert list((tmp_path / "var" / "cache" / "penstock").rglob("*.nbi"))  # the kernels are compiled
    installed = image.run(["python", "-c", "import pipelines; print(pipelines.__file__)"])
    assert installed.startswith(str(tmp_path / "opt" / "penstock"))
