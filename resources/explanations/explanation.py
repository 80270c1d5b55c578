"""The exit codes of commands, the row of an error in the table of codes, and its explanation."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Self

from resources.printed import HIDDEN, INLINED, printed_property


class ExitCode(IntEnum):
    """The exit codes of all commands, each with its meaning as the help and the pages say it."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Self:
        """A member from its number and meaning."""
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code

    SUCCESS = 0, "success"
    FAILED = 1, "failure that has no other code, or failures of several kinds"
    WRONG_USE = 2, "wrong use or wrong settings"
    TRY_AGAIN = 3, "a server, the store or another run is in the way: try again later"
    CHOICE_NEEDED = 4, "you must choose, because the log and the table do not fit"
    NOT_PROVEN = 5, "rows of a table are wrong or not proven"
    REFUSED = 6, "a login, a certificate or a right is refused"
    INTERRUPTED = 130, "interrupted"  # as in shells: 128 plus the number of SIGINT


@dataclass(frozen=True, slots=True)
class CodeRow:
    """The row of an error in the table of codes. Workers need it too, because each failure has its code.

    Args:
        number: the number of the code. It never gets another meaning. Its hundred is the family of the error.
        kind: the name of the class of the error. Its subclasses have the same code, unless they have their own.
        also: names of other classes with the same code.
    """

    number: int = field(metadata=HIDDEN)
    kind: str = field(metadata=HIDDEN)
    exit_code: ExitCode = ExitCode.FAILED
    """The exit code of a command that ends with this error alone."""
    also: tuple[str, ...] = field(default=(), metadata=HIDDEN)

    @printed_property
    def code(self) -> str:
        """The code, as messages show it."""
        return f"PS-{self.number}"

    @printed_property
    def kinds(self) -> tuple[str, ...]:
        """The names of the errors with this code, as in `kind` of an error."""
        return (self.kind, *self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A result of `penstock explain`. Its texts are Markdown, with code in backquotes.

    Args:
        row: the row of the error in the table of codes.
        title: what happened, in a few words.
        meaning: what it means for tables and loads.
        causes: why it happens.
        repairs: what to do, step by step or as alternatives.
        check_repair: what `penstock config check` prints in place of `repairs`, because there the reason is often in
            the settings. It is empty for an error that no test of that command expects.
    """

    row: CodeRow = field(metadata=INLINED)
    family: str
    """The title of the family."""
    title: str
    meaning: str
    causes: str
    repairs: tuple[str, ...]
    check_repair: str = field(metadata=HIDDEN)
    page: str
    """A page of the documentation and its section that tell more."""
