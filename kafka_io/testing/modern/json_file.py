"""A small JSON file that is replaced as a whole: after a crash it has the content from before or after a write."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_io.errors import Corrupt
from kafka_io.testing.data_dir import sync_names


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The file at `path`, which need not exist. One thread at a time may write it."""

    path: Path

    def read(self, default: dict[str, Any]) -> dict[str, Any]:
        """The object in the file, or `default` if there is no file.

        Raises:
            Corrupt: the file is not JSON, or contains something other than an object.
        """
        try:
            value = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return default
        except ValueError as error:
            raise Corrupt(f"{self.path} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise Corrupt(f"{self.path} does not contain a JSON object")
        return value

    def write(self, value: dict[str, Any]) -> None:
        """Replace the content of the file. It is on disk when this returns.

        A new file is written completely and then renamed, because a rename is atomic. Its content reaches the disk
        before the rename does, and the fsync of the directory makes the rename durable.
        """
        new_path = self.path.with_name(self.path.name + ".new")
        with new_path.open("wb") as file:
            file.write(json.dumps(value, separators=(",", ":")).encode())
            file.flush()
            os.fsync(file.fileno())
        new_path.replace(self.path)
        sync_names(self.path.parent)
