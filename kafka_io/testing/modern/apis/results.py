"""Helpers of the API handlers: errors become error codes."""

import logging
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError

logger = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")


class Attempted(NamedTuple, Generic[ValueT]):
    """The value of a part of an answer, or its error code and the reason."""

    value: ValueT
    code: int = ErrorCode.NONE
    reason: str | None = None


def attempt(
    action: Callable[[], ValueT], otherwise: ValueT, *, disk_error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR
) -> Attempted[ValueT]:
    """Run `action`. If it fails, the value is `otherwise`.

    Args:
        action: raises BrokerError, or OSError if the disk refuses.
        otherwise: the value in the answer to a client that receives an error code.
        disk_error: the error code for an OSError.
    """
    try:
        return Attempted(action())
    except BrokerError as error:
        logger.info("a request is refused: %s", error)
        return Attempted(otherwise, error.code, error.reason)
    except OSError as error:
        logger.exception("the disk refuses what a request needs")
        return Attempted(otherwise, disk_error, str(error))


def error_code(action: Callable[[], object], *, disk_error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> int:
    """Run `action` and ignore its result. Returns 0, or the code of the error that it raises; see `attempt`."""
    return attempt(action, None, disk_error=disk_error).code
