"""Penstock's own command, as a schedule would run it: `penstock load <topic>`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipelines.cli import main
from tests.bench.cases import PARQUET_CODEC, Job

_SETTINGS = """\
lake = "{folder}"
parquet_codec = "{codec}"
[clusters.bench]
bootstrap = "{bootstrap}"
[spark]
master = "local[2]"
"spark.ui.enabled" = false
"""


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The command, from nothing: what a slice may hold is fetched without Spark."""
    yield command(job)


def command(job: Job, extra: str = "") -> Callable[[], None]:
    """The command, with `extra` settings."""
    file = job.folder.with_name("penstock.toml")
    file.write_text(_SETTINGS.format(folder=job.folder, codec=PARQUET_CODEC, bootstrap=job.bootstrap) + extra)
    return lambda: main(["--settings", str(file), "load", job.topic], standalone_mode=False)
