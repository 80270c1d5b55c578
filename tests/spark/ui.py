"""What Spark's own interface says of an application: the one judge that is the same for classic and Connect."""

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LONGEST_S = 180.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkUI:
    """The interface at `url`, of one application that runs."""

    url: str

    def executors(self) -> int:
        """How many there are beside the driver."""
        return sum(executor["id"] != "driver" for executor in self._of_application("executors"))

    def running(self) -> int:
        """How many tasks run: attempts, on whichever executor is there."""
        return sum(executor["activeTasks"] for executor in self._of_application("executors"))

    def jobs(self) -> int:
        """How many jobs have begun and not ended."""
        return len(self._of_application("jobs?status=running"))

    def is_at_rest(self) -> bool:
        """Nothing runs, and nothing waits to run."""
        return self.running() == self.jobs() == 0

    def tries_the_last_again(self) -> bool:
        """All tasks of a stage are done but one, of which two attempts run."""
        return any(
            (stage["numTasks"] - stage["numCompleteTasks"], stage["numActiveTasks"]) == (1, 2)
            for stage in self._of_application("stages?status=active")
        )

    def _of_application(self, what: str) -> list[dict[str, Any]]:
        [application] = self._asked("applications")
        return self._asked(f"applications/{application['id']}/{what}")

    def _asked(self, what: str) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/api/v1/{what}", timeout=_LONGEST_S) as answer:
            return list(json.load(answer))


def await_that(holds: Callable[[], object]) -> None:
    """Wait until it does."""
    deadline = time.monotonic() + _LONGEST_S
    while not holds():
        assert time.monotonic() < deadline, f"not in {_LONGEST_S:.0f} s: {holds}"
        time.sleep(_POLL_S)
