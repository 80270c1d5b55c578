"""A small file of JSON that is replaced as a whole: after a crash it holds what it held before or after a write."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_io.broker.durable import sync_names
from kafka_io.errors import Corrupt


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The file at `path`, which need not exist; one thread writes at a time."""

    path: Path

    def read(self, default: dict[str, Any]) -> dict[str, Any]:
        """The object in the file, `default` when there is no file.

        Raises:
            Corrupt: it holds something else.
        """
        try:
            value = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return default
        except ValueError as error:
            raise Corrupt(f"{self.path} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise Corrupt(f"{self.path} does not hold an object")
        return value

    def write(self, value: dict[str, Any]) -> None:
        """Replace what is in the file; on return it is on the disk."""
        fresh = self.path.with_name(self.path.name + ".new")
        with fresh.open("wb") as file:
            file.write(json.dumps(value, separators=(",", ":")).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        sync_names(self.path.parent)
