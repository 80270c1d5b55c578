"""A driver with Spark, whose workers end at failpoints. It runs many loads, because a JVM takes seconds to start."""

from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from pipelines.cli.main import main
from resources.failpoints import KILL_AT, ONCE
from resources.machines.spark import close_session, open_session
from tests.crash.child import redirect_output
from tests.crash.drivers import Ended
from tests.crash.forking import forking
from tests.crash.harness import LOAD, Trial

_LONGEST_S = 180.0


class SparkDriver:
    """Runs `penstock` in one Spark session with the settings `spark`, as long as the `with` block lasts."""

    def __init__(self, spark: Mapping[str, str]) -> None:
        self._spark = dict(spark)
        self._connection, child_end = forking().Pipe()
        self._process = forking().Process(target=_serve, args=(child_end, self._spark))

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(_LONGEST_S)
        self._process.kill()
        self._process.join()

    def begin(self, trial: Trial, *kill_at: str) -> Path:
        """Begin a load; for each entry of `kill_at`, the first worker that reaches it ends. Returns the mark folder."""
        home, settings = trial.new_driver_files(spark=self._spark)
        self._connection.send(
            (["--settings", str(settings), *LOAD], {KILL_AT: ",".join(kill_at), ONCE: str(home)}, home)
        )
        return home

    def end(self, home: Path) -> Ended:
        """Wait until the load ends."""
        if not self._connection.poll(_LONGEST_S):
            raise TimeoutError(f"the load has not ended after {_LONGEST_S} s")
        return Ended.of(home, self._connection.recv())

    def load(self, trial: Trial, *kill_at: str) -> Ended:
        """Load with these entries of KILL_AT, and check the table."""
        ended = self.end(self.begin(trial, *kill_at))
        trial.check()
        return ended


def _serve(commands: Connection, spark: Mapping[str, str]) -> None:
    session = open_session(spark)
    while (command := commands.recv()) is not None:
        arguments, for_workers, home = command
        session.sparkContext.environment.update(for_workers)
        commands.send(_run(arguments, home))
    close_session()


def _run(arguments: list[str], home: Path) -> int:
    redirect_output(home)
    try:
        main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0
