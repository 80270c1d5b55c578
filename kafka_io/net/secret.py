"""Secrets: settings, plans and tasks contain only references to them.

Each process reads a secret itself when it connects, and keeps it in an object that does not show it (faults X01, X02).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from kafka_io.errors import SecretMissing, system_reason
from kafka_io.net.secret_command import CommandFailed, is_command_line, output_of

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_BYTES = 64 * 1024
_MAX_SHOWN = 200
HOW_TO_NAME_ONE = (
    "write a reference instead of the secret: `env:NAME` for a variable, `file:/absolute/path` for a file, "
    "`command:PROGRAM ARGUMENTS` for what a program prints"
)


def is_reference(text: str) -> bool:
    """Whether a text that may also be something else names a secret."""
    return text.startswith(("env:", "file:", "command:"))


def one_line(text: str) -> str:
    """A text of the other side for a log: short and printable (fault X05)."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_MAX_SHOWN])


class Secret:
    """A secret in memory. It is printed as `***` and cannot be pickled or copied; only `reveal` returns it."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def reveal(self) -> bytes:
        """The secret itself. Pass the result on directly: a local variable would appear in tracebacks with locals."""
        return self._data

    def masked(self, text: str) -> str:
        """A text of the other side for a log: one short printable line without this secret (fault X05)."""
        hidden = self._data.decode("utf-8", "replace")
        return one_line(text.replace(hidden, "***") if hidden else text)  # Kerberos has no secret here

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled; pickle its reference")


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where each process that connects finds a secret.

    It is in an environment variable (`env`) or a file (`file`), or a program prints it (`command`).

    Raises:
        ValueError: the text is not a reference. The message does not repeat it, because it may be the secret itself.
    """

    kind: str
    name: str

    def __post_init__(self) -> None:
        is_valid = {
            "env": lambda: _VARIABLE.fullmatch(self.name) is not None,
            "file": lambda: Path(self.name).is_absolute(),
            "command": lambda: is_command_line(self.name),
        }.get(self.kind)
        if is_valid is None or not is_valid():
            raise ValueError(HOW_TO_NAME_ONE)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`. Raises the error of the class."""
        kind, _, name = text.partition(":")
        return cls(kind, name)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> dict[str, Any]:
        """Settings contain a reference as its text. The result is plain data, so pydantic is not needed here."""
        function = {"type": "no-info", "function": lambda text: cls.parse(text if isinstance(text, str) else "")}
        return {"type": "function-plain", "function": function, "serialization": {"type": "to-string"}}

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, str]:
        """The type of a reference in the settings reference."""
        return {"type": "string", "format": "secret"}

    def read(self) -> Secret:
        """Read the secret. A file is read and a command runs at each call, so another program can renew a token.

        Line ends at the end of a file or of an output are not part of the secret.

        Raises:
            SecretMissing: the variable or file does not exist, the command fails, or the secret is empty or too large.
        """
        read = {"env": self._from_environment, "file": self._from_file, "command": self._from_command}[self.kind]
        secret = read()
        if not secret.reveal():
            raise SecretMissing(f"the secret {self} is empty")
        if len(secret.reveal()) > _MAX_BYTES:
            raise SecretMissing(f"the secret {self} is larger than {_MAX_BYTES} bytes")
        return secret

    def _from_environment(self) -> Secret:
        if self.name not in os.environ:
            raise SecretMissing(f"the secret {self} is not in the environment of this process")
        return Secret(os.fsencode(os.environ[self.name]))

    def _from_file(self) -> Secret:
        try:
            with Path(self.name).open("rb") as file:
                return Secret(file.read(_MAX_BYTES + 1).rstrip(b"\r\n"))
        except OSError as error:
            raise SecretMissing(f"the secret {self} cannot be read: {system_reason(error)}") from error
        except ValueError as error:
            raise SecretMissing(f"the secret {self} cannot be read: this text cannot be a path") from error

    def _from_command(self) -> Secret:
        try:
            return Secret(output_of(self.name, max_bytes=_MAX_BYTES + 1).rstrip(b"\r\n"))
        except CommandFailed as error:
            raise SecretMissing(f"the secret {self} cannot be read: {error}") from error
