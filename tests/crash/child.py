"""Runs `penstock` in a fork of a process that has imported everything, so that it starts in milliseconds.

The fork server imports this module, and the import also loads the kernels, once for all forks. This is the only module
here that does work at its import. No thread of ours and no file of a lake is open at the time of a fork.
"""

import encodings.idna
import encodings.utf_8_sig  # noqa: F401 - imported by connections
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import duckdb  # noqa: F401 - imported by consumers of increments
import pyarrow.dataset  # noqa: F401 - imported by commands, like the next one and those marked below

import resources.kafka  # noqa: F401
from kafka_io.model import Generation
from kafka_io.reader import first_fetches, modern_partition  # noqa: F401
from kafka_io.reader.source import warm
from kafka_io.reader.v07 import partition  # noqa: F401
from kafka_io.values.avro import decoder as avro_decoder
from pipelines.cli.main import main
from pipelines.cli.output import progress  # noqa: F401
from pipelines.fetch.fetch_runner import FetchRunner, fetch_here
from pipelines.fetch.fetch_task import FetchTask
from pipelines.increments import delta_output, duckdb_output, postgres_output  # noqa: F401
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.load import load, load_topics, planned  # noqa: F401
from pipelines.maintenance import clean, erase, erased_files, retire, rewind  # noqa: F401
from pipelines.rewrites import convert, redecode, replay, rewrite  # noqa: F401
from pipelines.table import exact_sets
from pipelines.verify import verify  # noqa: F401
from resources import failpoints as steps
from resources.progress import Progress

for generation in (Generation.V07, Generation.MODERN):
    warm(generation)
avro_decoder.warm()

PRINTED = ("output", "errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """Options of a driver that its settings file does not have.

    Args:
        slices_per_commit: the approximate number of slices in one commit.
        inline_bytes: the maximum size of a set of offsets in the log entry; larger sets are in files.
        file_bytes: the largest size of a file that the driver writes; a larger file fails as on a full disk.
        steps_file: a file to which the driver appends the name of each failpoint that it passes.
    """

    slices_per_commit: int = 1
    inline_bytes: int = exact_sets._MAX_INLINE_BYTES
    file_bytes: int | None = None
    steps_file: Path | None = None


def call(
    function: Callable[..., None], arguments: Sequence[object], environment: Mapping[str, str], home: Path
) -> None:
    """Call a function in this process, with these variables, and with the output of the process in `home`."""
    redirect_output(home)
    os.environ.update(environment)
    function(*arguments)


def penstock(arguments: Sequence[str], options: DriverOptions) -> None:
    """Run `penstock` in this process. It fetches all slices here; there is no Spark."""
    if options.steps_file:
        _record_steps(options.steps_file)
    if options.file_bytes is not None:
        # Python ignores SIGXFSZ, so a larger write fails with "file too large", as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.file_bytes, options.file_bytes))
    with (
        patch.object(FetchRunner, "fetch", staticmethod(fetch_here_all)),
        patch.object(planned, "_STEP_SLICES", options.slices_per_commit),
        patch.object(exact_sets, "_MAX_INLINE_BYTES", options.inline_bytes),
    ):
        main(list(arguments))


def redirect_output(home: Path) -> None:
    """Write the standard output and errors of this process to files in `home` from now on."""
    for number, name in enumerate(PRINTED, start=1):
        with (home / name).open("wb") as file:
            os.dup2(file.fileno(), number)


def fetch_here_all(works: Sequence[FetchTask], on_progress: Progress, _ahead: object = ()) -> list[SliceFacts]:
    """Fetch like `FetchRunner.fetch`, but in this process, for any number of slices."""
    return sorted(fetch_here(works, on_progress), key=lambda facts: facts.offsets)


def _record_steps(file: Path) -> None:
    os.environ.setdefault(steps.KILL_AT, "nowhere")
    original_pass = steps._pass

    def record(name: str) -> None:
        with file.open("a") as lines:
            lines.write(f"{name}\n")
        original_pass(name)

    steps._pass = record
