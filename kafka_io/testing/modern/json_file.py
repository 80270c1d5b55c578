"""A small JSON file that is replaced as a whole: after a crash it has the content from before or after a write."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from kafka_io.errors import Corrupt
from kafka_io.testing.data_dir import sync_names

ContentT = TypeVar("ContentT")


@dataclass(frozen=True, slots=True)
class JsonFile(Generic[ContentT]):
    """The file at `path`, which need not exist. One thread at a time may write it."""

    path: Path
    content_type: type[ContentT]

    def read(self, default: ContentT) -> ContentT:
        """The content of the file, or `default` if there is no file.

        Raises:
            Corrupt: the file is not JSON, or contains something other than `content_type`.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=self.content_type)
        except FileNotFoundError:
            return default
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{self.path} has the wrong content: {error}") from error

    def write(self, content: ContentT) -> None:
        """Replace the content of the file. It is on disk when this returns.

        A new file is written completely and then renamed, because a rename is atomic. Its content reaches the disk
        before the rename does, and the fsync of the directory makes the rename durable.
        """
        new_path = self.path.with_name(self.path.name + ".new")
        with new_path.open("wb") as file:
            file.write(msgspec.json.encode(content))
            file.flush()
            os.fsync(file.fileno())
        new_path.replace(self.path)
        sync_names(self.path.parent)
