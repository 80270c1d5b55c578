"""Secrets: what is configured, planned and sent to workers holds only references to them.

Each process reads a secret itself, when it connects, and holds it wrapped (X01, X02).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from kafka_io.errors import SecretMissing

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_BYTES = 64 * 1024
_MOST_TOLD = 200
HOW_TO_NAME_ONE = "a secret is not written here but named: `env:NAME` for a variable, `file:/absolute/path` for a file"


class Secret:
    """A secret in memory. It shows as `***` and refuses to be pickled or copied; only `reveal` gives it away."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def reveal(self) -> bytes:
        """The secret itself, for the call that needs it: given a name, it would be among a traceback's locals."""
        return self._data

    def masked(self, text: str) -> str:
        """What the other side said, fit for a log: on one line, of bounded length, without this secret (X05)."""
        told = text.replace(self._data.decode("utf-8", "replace"), "***")
        return "".join(letter if letter.isprintable() else "?" for letter in told[:_MOST_TOLD])

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret does not travel; its reference does")


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret lies: `env`, a variable of the environment, or `file`. Every process that connects needs it there.

    Raises:
        ValueError: it is no reference. The sentence does not repeat it, for it may be the secret.
    """

    kind: str
    name: str

    def __post_init__(self) -> None:
        is_file = self.kind == "file" and Path(self.name).is_absolute()
        if not is_file and not (self.kind == "env" and _VARIABLE.fullmatch(self.name)):
            raise ValueError(HOW_TO_NAME_ONE)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`; same errors as the class."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def read(self) -> Secret:
        """The secret as it is now: files are read anew each time, so that a token may be renewed beside us.

        Line ends after it belong to the file, not to the secret.

        Raises:
            SecretMissing: nothing is there.
        """
        found = self._of_environment() if self.kind == "env" else self._of_file()
        if not found.reveal():
            raise SecretMissing(f"the secret {self} is empty")
        return found

    def _of_environment(self) -> Secret:
        if self.name not in os.environ:
            raise SecretMissing(f"the secret {self} is not in the environment of this process")
        return Secret(os.fsencode(os.environ[self.name]))

    def _of_file(self) -> Secret:
        try:
            with Path(self.name).open("rb") as file:
                found = Secret(file.read(_MOST_BYTES + 1).rstrip(b"\r\n"))
        except (OSError, ValueError) as error:  # ValueError: no path can look like this
            raise SecretMissing(f"the secret {self} cannot be read: {error}") from error
        if len(found.reveal()) > _MOST_BYTES:
            raise SecretMissing(f"the secret {self} is larger than {_MOST_BYTES} bytes")
        return found
