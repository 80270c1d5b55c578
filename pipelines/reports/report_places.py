"""The places to which the reports of one run are written: files, folders and servers."""

from collections.abc import Callable
from typing import TypeVar

from kafka_io.errors import LocatedError

ReportT = TypeVar("ReportT")


class ReportPlaces:
    """Writes reports of one run. After a failure the run does not use the same place again.

    Args:
        lost: the beginning of the warning about a failure, such as "the metrics of this run are lost".
        failure: the error that a place raises.
    """

    def __init__(self, lost: str, failure: type[LocatedError]) -> None:
        self._lost = lost
        self._failure = failure
        self._failed: set[str] = set()

    def write(self, report: ReportT, *places: tuple[str | None, Callable[[str, ReportT], None]]) -> list[str]:
        """Write a report to each place that the settings name; returns warnings."""
        warnings: list[str] = []
        for place, write in places:
            if place is not None and place not in self._failed:
                try:
                    write(place, report)
                except self._failure as error:
                    self._failed.add(place)
                    warnings.append(f"{self._lost}: {error.reason}")
        return warnings
