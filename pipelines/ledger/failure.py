"""Errors as data: they cross from a worker to the driver, and stay after the process that raised them has ended."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from kafka_io.errors import LocatedError, Where
from kafka_io.typed_json import convert
from resources.errors import sentence_of
from resources.explanations.codes import code_of, code_of_kind, coded
from resources.printed import HIDDEN, PrintedError, printed_property


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFailure:
    """An error as data: why a slice was not fetched, or a topic not loaded. It crosses from a worker to the driver.

    A `retriable` failure may not happen again at another attempt. `code` is what `penstock explain` takes; without one,
    such as in files of earlier versions, it is that of the kind.
    """

    kind: str
    reason: str
    where: Mapping[str, str | int] = field(default_factory=dict)
    trace: str = ""
    retriable: bool = False
    code: str = ""

    def __post_init__(self) -> None:
        """Complete the code."""
        if not self.code:
            object.__setattr__(self, "code", code_of_kind(self.kind))

    @classmethod
    def of(cls, error: BaseException, where: Where) -> Self:
        """The failure for `error`; `where` completes the place that the error itself knows.

        The texts of other programs, which caused the error, are only in the stack trace (fault U11).
        """
        retriable = False
        if isinstance(error, LocatedError):
            where, retriable = error.where.within(where), error.retriable
        trace = traceback.format_exception(error) if error.__traceback__ else ()
        return cls(
            kind=type(error).__name__,
            reason=_encodable(sentence_of(error)),
            where=where.as_dict(),
            trace=_encodable("".join(trace)),
            retriable=retriable,
            code=code_of(type(error)),
        )

    def printed(self) -> PrintedError:
        """The error object of every command's `--json`: its code, its sentence, and its place as far as it is known."""
        partition = self.where.get("partition")
        place = {**self.where, "partition": None if partition is None else str(partition)}
        stated = {"code": self.code, "kind": self.kind, "message": self.reason, "retriable": self.retriable}
        return convert({**stated, **place}, PrintedError)

    def __str__(self) -> str:
        location = str(convert(self.where, Where))
        return coded(f"{self.kind}: {self.reason}" + (f" [{location}]" if location else ""), self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failable:
    """A result that has the error that ended the work, if one did."""

    failure: SliceFailure | None = field(default=None, metadata=HIDDEN)

    @printed_property
    def errors(self) -> tuple[SliceFailure, ...]:
        """The error, if there is one."""
        return (self.failure,) if self.failure else ()


def _encodable(text: str) -> str:
    # Names of files may hold bytes that are not UTF-8; Python keeps them as lone surrogates, which JSON refuses.
    return text.encode(errors="backslashreplace").decode()
