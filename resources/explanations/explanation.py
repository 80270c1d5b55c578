"""The row of an error in the table of codes, and the exit codes of commands."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self


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


FAMILIES = {
    1: "Settings and commands",
    2: "Brokers, network and logins",
    3: "What the log holds, and what it lost",
    4: "Tables and the store",
    5: "Values and schemas",
    6: "Increments, state tables and outputs",
    7: "The machine: packages, Java, Spark, disks, Dagster",
    9: "Unexpected ends",
}
"""The title of each family of codes, by its hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The row of an error, which `penstock explain` prints. Texts are Markdown, with code in backquotes.

    Args:
        number: the number of the code. It never gets another meaning.
        kind: the name of the class of the error. Its subclasses have the same code, unless they have their own.
        title: what happened, in a few words.
        meaning: what it means for tables and loads.
        causes: why it happens.
        repairs: what to do, step by step or as alternatives.
        page: a page of docs/ and its section that tell more.
        exit_code: of a command that ends with this error alone.
        also: names of other classes with the same code.
    """

    number: int
    kind: str
    title: str
    meaning: str
    causes: str
    repairs: tuple[str, ...]
    page: str
    exit_code: ExitCode = ExitCode.FAILED
    also: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The code, as messages show it."""
        return f"PS-{self.number}"

    @property
    def family(self) -> str:
        """The title of the family."""
        return FAMILIES[self.number // 100]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of all classes that have a row of their own here."""
        return (self.kind, *self.also)
