"""The command `penstock load <topic>` in a new process, as a schedule runs it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipelines.cli.main import main
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
    """The command, in a new process. One slice can hold the topic, so no Spark is started."""
    yield command(job)


def command(job: Job, extra: str = "") -> Callable[[], None]:
    """The command, with a settings file that ends with `extra`."""
    file = job.folder.with_name("penstock.toml")
    file.write_text(_SETTINGS.format(folder=job.folder, codec=PARQUET_CODEC, bootstrap=job.bootstrap) + extra)
    return lambda: main(["--settings", str(file), "load", job.topic], standalone_mode=False)
