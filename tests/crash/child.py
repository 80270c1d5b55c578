"""`penstock` in a fork of a process that has imported everything: it begins in milliseconds, and dies alone.

This is the one module here that works when it is imported, for that is what the process to be forked does: the kernels
are loaded once, for all forks. No thread of ours and no file of a lake is open then.
"""

import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import resources.kafka  # noqa: F401 - imported by the command that opens a cluster
from kafka_io.model import Generation
from kafka_io.reader.source import warm
from pipelines.cli.main import main
from pipelines.loading import failpoints as steps
from pipelines.loading import load, verify  # noqa: F401 - verify: as above
from pipelines.loading.execute import fetch_here
from pipelines.loading.work import FetchTask, SliceFacts
from resources.spark import Progress

for generation in (Generation.V07, Generation.MODERN):
    warm(generation)

PRINTED = ("output", "errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms a driver works.

    Args:
        slices_per_commit: how many slices are one commit's, about.
        file_bytes: what no file of it may be larger than, as if the disk were full.
        tell_steps: the file into which it writes the names of the steps that it passes.
    """

    slices_per_commit: int = 1
    file_bytes: int | None = None
    tell_steps: Path | None = None


def penstock(arguments: Sequence[str], environment: Mapping[str, str], home: Path, terms: Terms) -> None:
    """Be `penstock`, which prints to `home`. Slices of all tasks are fetched in this process, not by Spark."""
    printing_to(home)
    os.environ.update(environment)
    if terms.tell_steps:
        _tell_steps(terms.tell_steps)
    if terms.file_bytes is not None:
        # Python ignores SIGXFSZ, so a larger write fails with "file too large", as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (terms.file_bytes, terms.file_bytes))
    with (
        patch.object(load, "execute", lambda _spark, works, on_progress: fetch_here_all(works, on_progress)),
        patch.object(load, "_STEP_SLICES", terms.slices_per_commit),
    ):
        main(list(arguments))


def printing_to(home: Path) -> None:
    """What this process prints goes to files there from now on."""
    for number, name in enumerate(PRINTED, start=1):
        with (home / name).open("wb") as file:
            os.dup2(file.fileno(), number)


def fetch_here_all(works: Sequence[FetchTask], on_progress: Progress) -> list[SliceFacts]:
    """What `execute` answers, of any number of slices, without Spark."""
    return sorted(fetch_here(works, on_progress), key=lambda facts: facts.offsets)


def _tell_steps(file: Path) -> None:
    os.environ.setdefault(steps.KILL_AT, "nowhere")
    pass_as_told = steps._pass

    def tell(name: str) -> None:
        with file.open("a") as lines:
            lines.write(f"{name}\n")
        pass_as_told(name)

    steps._pass = tell
