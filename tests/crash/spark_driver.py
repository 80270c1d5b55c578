"""A driver with Spark, whose workers are ended at named steps. It stays for many loads: a JVM takes seconds."""

import os
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from pipelines.cli.main import main
from pipelines.loading.failpoints import KILL_AT, ONCE
from resources.spark import close_session, open_session
from tests.crash.child import printing_to
from tests.crash.drivers import Ended
from tests.crash.forking import forking
from tests.crash.harness import LOAD, Trial

_LONGEST_S = 180.0


class SparkDriver:
    """Runs `penstock` on one Spark session, set up by `spark`; a context manager."""

    def __init__(self, spark: Mapping[str, str], environment: Mapping[str, str] | None = None) -> None:
        self._spark = dict(spark)
        self._mine, child_end = forking().Pipe()
        self._process = forking().Process(target=_serve, args=(child_end, self._spark, dict(environment or {})))

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._mine.send(None)
        self._process.join(_LONGEST_S)
        self._process.kill()
        self._process.join()

    def begin(self, trial: Trial, *at: str) -> Path:
        """Begin a load; of each `at`, the first worker to come there ends. The folder where they leave their marks."""
        home, settings = trial.place(spark=self._spark)
        self._mine.send((["--settings", str(settings), *LOAD], {KILL_AT: ",".join(at), ONCE: str(home)}, home))
        return home

    def end(self, home: Path) -> Ended:
        """How that load ended."""
        if not self._mine.poll(_LONGEST_S):
            raise TimeoutError(f"no end after {_LONGEST_S} s")
        return Ended.of(home, self._mine.recv())

    def load(self, trial: Trial, *at: str) -> Ended:
        """Load, and judge the table."""
        ended = self.end(self.begin(trial, *at))
        trial.check()
        return ended


def _serve(commands: Connection, spark: Mapping[str, str], environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    session = open_session(spark)
    while (command := commands.recv()) is not None:
        arguments, for_workers, home = command
        session.sparkContext.environment.update(for_workers)
        commands.send(_run(arguments, home))
    close_session()


def _run(arguments: list[str], home: Path) -> int:
    printing_to(home)
    try:
        main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0
