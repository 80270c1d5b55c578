"""A client of the REST API of Spark's UI, which shows classic and Connect applications in the same way."""

import json
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_TIMEOUT_S = 180.0
_POLL_S = 0.2


@dataclass(frozen=True, kw_only=True)
class SparkUI:
    """The UI of a running application at `url`."""

    url: str

    @cached_property
    def _application(self) -> str:
        [application] = self._get("applications")
        return str(application["id"])

    def executors(self) -> int:
        """The number of executors."""
        return sum(executor["id"] != "driver" for executor in self._get_of_application("executors"))

    def containers(self) -> list[str]:
        """The container of YARN of each executor, also of those that have ended."""
        executors = self._get_of_application("allexecutors")
        return [executor["attributes"]["CONTAINER_ID"] for executor in executors if executor["id"] != "driver"]

    def running(self) -> int:
        """The number of running task attempts."""
        return sum(executor["activeTasks"] for executor in self._get_of_application("executors"))

    def jobs(self) -> int:
        """The number of running jobs."""
        return len(self._get_of_application("jobs?status=running"))

    def is_at_rest(self) -> bool:
        """Whether no task and no job runs."""
        return self.running() == self.jobs() == 0

    def attempts(self) -> dict[str, int]:
        """The number of task attempts by status, and under `speculative` those that Spark began beside another one."""
        counts = Counter[str]()
        for stage in self._get_of_application("stages"):
            path = f"stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=1000"
            tasks = self._get_of_application(path)
            counts.update(task["status"] for task in tasks)
            counts["speculative"] += sum(task["speculative"] for task in tasks)
        return counts

    def retries_last_task(self) -> bool:
        """Whether the last task of a stage has two running attempts."""
        return any(
            (stage["numTasks"] - stage["numCompleteTasks"], stage["numActiveTasks"]) == (1, 2)
            for stage in self._get_of_application("stages?status=active")
        )

    def _get_of_application(self, path: str) -> list[dict[str, Any]]:
        return self._get(f"applications/{self._application}/{path}")

    def _get(self, path: str) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=_TIMEOUT_S) as answer:
            return list(json.load(answer))


def await_that(holds: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, f"after {_TIMEOUT_S:.0f} s this does not hold: {holds}"
        time.sleep(_POLL_S)
