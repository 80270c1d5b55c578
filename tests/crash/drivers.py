"""Drivers: `penstock` or a function in its own process, which a test kills at a failpoint, or stops and resumes."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self

from resources.failpoints import KILL_AT, ONCE
from tests.crash import child
from tests.crash.forking import forking

_LONGEST_S = 600.0  # a busy machine is slow
_POLL_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a driver.

    Args:
        code: the exit code; after a signal, the negative number of the signal.
        reached: the entries of KILL_AT that the driver reached.
        output: its standard output.
        errors: its standard errors.
    """

    code: int
    reached: tuple[str, ...]
    output: str
    errors: str

    @classmethod
    def of(cls, home: Path, code: int) -> Self:
        """Read the files in the folder of a driver that has ended."""
        output, errors = ((home / name).read_text() for name in child.PRINTED)
        return cls(code=code, reached=reached(home), output=output, errors=errors)


def reached(home: Path) -> tuple[str, ...]:
    """The entries of KILL_AT that a driver has reached, from the mark files in its folder."""
    return tuple(sorted(file.name for file in home.iterdir() if file.name not in child.PRINTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A running process. Its folder `home` has its output, and a mark file per entry of KILL_AT that it reached."""

    process: ForkServerProcess
    home: Path

    @classmethod
    def start(cls, home: Path, arguments: Sequence[str], options: child.DriverOptions, *, kill_at: str = "") -> Self:
        """Start a driver that runs `penstock` with these arguments."""
        return cls.calling(home, child.penstock, (arguments, options), kill_at=kill_at)

    @classmethod
    def calling(
        cls, home: Path, function: Callable[..., None], arguments: Sequence[object], *, kill_at: str = ""
    ) -> Self:
        """Start a driver that calls a function of a module, and ends or stops at `kill_at` (see KILL_AT).

        Without `kill_at`, the driver is not disturbed.
        """
        environment = {KILL_AT: kill_at, ONCE: str(home)} if kill_at else {}
        process = forking().Process(target=child.call, args=(function, arguments, environment, home))
        process.start()
        return cls(process=process, home=home)

    @property
    def reached(self) -> tuple[str, ...]:
        """The entries of KILL_AT that the driver has reached so far."""
        return reached(self.home)

    def stopped(self) -> bool:
        """Wait until the driver stops at a failpoint or ends; returns whether it has stopped."""
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline:
            if not self.process.is_alive():
                return False
            if any(name.startswith("stop:") for name in self.reached) and self._state() == "T":
                return True
            time.sleep(_POLL_S)
        raise TimeoutError(f"the driver has neither stopped nor ended after {_LONGEST_S} s; it reached {self.reached}")

    def _state(self) -> str:
        """The state of the process in the kernel; T means stopped."""
        try:
            return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "gone"

    def resume(self) -> None:
        """Resume a stopped driver."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def wait(self) -> Ended:
        """Wait until the driver ends.

        Raises:
            TimeoutError: it did not end in time, and was killed.
        """
        self.process.join(_LONGEST_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise TimeoutError(f"the driver has not ended after {_LONGEST_S} s: {Ended.of(self.home, -1)}")
        return Ended.of(self.home, self.process.exitcode)
