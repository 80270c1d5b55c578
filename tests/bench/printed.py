"""Results that a measuring process prints as one line of JSON, and its parent process reads."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class PrintedResult:
    """The base of dataclasses whose fields are numbers."""

    __slots__ = ()

    def write(self: "DataclassInstance") -> None:
        """Print the result as one line of JSON."""
        sys.stdout.write(json.dumps(asdict(self)) + "\n")
        sys.stdout.flush()

    @classmethod
    def parse(cls, printed: bytes) -> Self:
        """The result that a process printed as its last line."""
        fields: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return cls(**fields)
