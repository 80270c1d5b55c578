"""Drivers: `penstock` as a process of its own, that a test ends at a failpoint, or stops there and continues later."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self

from pipelines.loading.failpoints import KILL_AT, ONCE
from tests.crash import child
from tests.crash.forking import forking

_LONGEST_S = 120.0
_POLL_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a driver: its exit code, negative after a signal; the failpoint that had to end it; its output."""

    code: int
    reached: tuple[str, ...]
    output: str
    errors: str

    @classmethod
    def of(cls, home: Path, code: int) -> Self:
        """From what it left in its folder."""
        output, errors = ((home / name).read_text() for name in child.PRINTED)
        return cls(code=code, reached=reached(home), output=output, errors=errors)


def reached(home: Path) -> tuple[str, ...]:
    """The marks in a driver's folder: where it was ended."""
    return tuple(sorted(file.name for file in home.iterdir() if file.name not in child.PRINTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A `penstock` that runs. `home` is the folder of what it prints, and of the marks of where it was ended."""

    process: ForkServerProcess
    home: Path

    @classmethod
    def start(cls, home: Path, arguments: Sequence[str], terms: child.Terms, *, at: str = "") -> Self:
        """Start one that ends at `at` (see KILL_AT; several are parted by commas)."""
        environment = {KILL_AT: at, ONCE: str(home)} if at else {}
        process = forking().Process(target=child.penstock, args=(arguments, environment, home, terms))
        process.start()
        return cls(process=process, home=home)

    @property
    def reached(self) -> tuple[str, ...]:
        """The failpoints at which the driver had to end or stop, and which it has reached."""
        return reached(self.home)

    def stopped(self) -> bool:
        """Wait until it has stopped at a step, or ended without; whether it has stopped."""
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline:
            if not self.process.is_alive():
                return False
            if any(name.startswith("stop:") for name in self.reached) and self._state() == "T":
                return True
            time.sleep(_POLL_S)
        raise TimeoutError(f"neither stopped nor ended: {self.reached}")

    def _state(self) -> str:
        """The state of the process in the kernel; T means stopped."""
        try:
            return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "gone"

    def go_on(self) -> None:
        """Let a stopped one go on."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def wait(self) -> Ended:
        """Wait for the end of the driver; fail if it does not come."""
        self.process.join(_LONGEST_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise TimeoutError(f"no end after {_LONGEST_S} s: {Ended.of(self.home, -1)}")
        return Ended.of(self.home, self.process.exitcode)
