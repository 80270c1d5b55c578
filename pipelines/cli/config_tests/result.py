"""The result of a test of `penstock config check`, and how each problem is repaired."""

from collections.abc import Callable
from dataclasses import dataclass

from kafka_io.errors import LocatedError, Where
from pipelines.cli.output.result import show_trace
from pipelines.ledger.failure import SliceFailure
from resources.explanations.texts import explanations

UNKNOWN_REPAIR = "Run `penstock --debug config check`: it shows the details."


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A result of `penstock config check`."""

    check: str
    ok: bool = True
    message: str
    errors: tuple[SliceFailure, ...] = ()
    repair: str | None = None
    """How to repair the problem; None if there is none."""


class BrokerRefused(LocatedError):
    """Some brokers of a cluster cannot be reached from this machine, although others can."""


class ClockWrong(LocatedError):
    """This machine, the store or the producers have another time."""


class RightsMissing(LocatedError):
    """The client may not do with topics what a load needs."""


class SpaceShort(LocatedError):
    """A disk is almost full."""


class StorageUnusable(LocatedError):
    """Dagster cannot use its storage."""


def passed(subject: str, message: str) -> CheckResult:
    """The result of a test that passed."""
    return CheckResult(check=subject, message=message)


def failed(subject: str, error: Exception) -> CheckResult:
    """The result of a test that failed with this error."""
    failure = SliceFailure.of(error, Where())
    show_trace(failure.trace)
    repair = _repair_of(error, failure.code)
    return CheckResult(check=subject, ok=False, message=str(failure), errors=(failure,), repair=repair)


def _repair_of(error: Exception, code: str) -> str:
    if isinstance(error, IsADirectoryError):  # it shares its code with many errors of the operating system
        return "Correct the path in the settings: it must be a file."
    return explanations()[code].check_repair or UNKNOWN_REPAIR


def checked(subject: str, test: Callable[[], str]) -> CheckResult:
    """The result of `test`, which returns a message or raises the reason why it fails."""
    try:
        return passed(subject, test())
    except Exception as error:  # noqa: BLE001 - any error is the reason why the test fails
        return failed(subject, error)
