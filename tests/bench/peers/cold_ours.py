"""Penstock's own command, as a schedule would run it: `penstock load <topic>`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipelines.cli import main
from tests.bench.cases import Job

_SETTINGS = """\
lake = "{folder}"
[clusters.bench]
bootstrap = "{bootstrap}"
[spark]
master = "local[2]"
"spark.ui.enabled" = false
"""


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The command, from nothing."""
    file = job.folder.with_name("penstock.toml")
    file.write_text(_SETTINGS.format(folder=job.folder, bootstrap=job.bootstrap))
    yield lambda: main(["--settings", str(file), "load", job.topic], standalone_mode=False)
