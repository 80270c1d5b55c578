"""Small notes below the folder of a table: when housekeeping deleted files, and which consumers read the table.

A note is a JSON file in a folder with an underscore, which readers of the table do not see. Notes only inform: no load
reads them, and anybody may delete them. They have names of files and of outputs, and no values of records.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec

from kafka_io.typed_json import decode_json
from resources.errors import LoadError
from resources.stores.lake import files_below, filesystem, lake_errors, write_file

NoteT = TypeVar("NoteT")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedFiles:
    """Data files of a table that housekeeping has deleted.

    Args:
        time: when.
        paths: their paths, relative to the table.
    """

    time: datetime
    paths: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenConsumer:
    """A consumer of increments, as it was when it read the table last.

    Args:
        consumer: its name.
        kind: the name of the class of its output.
        output: the place of its output.
        version: the version of the table whose effect the output has.
        time: when.
    """

    consumer: str
    kind: str = ""
    output: str
    version: int
    time: datetime


class TableNotes(Generic[NoteT]):
    """The notes of one kind of a table.

    Args:
        uri: the table.
        options: the options of its store.
        type_: the type of a note.
    """

    def __init__(self, uri: str, options: Mapping[str, str], type_: type[NoteT]) -> None:
        self._uri, self._type = uri, type_
        self._folder = _FOLDERS[type_]
        self._files = filesystem(uri, options)

    def write(self, key: str, note: NoteT) -> None:
        """Write a note in the place of the one with the same key. A store that refuses the note is no error."""
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        with suppress(LoadError), lake_errors(self._uri):
            write_file(self._files, f"{self._folder}/{name}.json", msgspec.json.encode(note))

    def read(self) -> Iterator[NoteT]:
        """All notes. Damaged ones are left out.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        with lake_errors(self._uri):
            for info in files_below(self._uri, self._files, self._folder):
                with suppress(msgspec.DecodeError, FileNotFoundError), self._files.open_input_stream(info.path) as file:
                    yield decode_json(file.read(), self._type)


_FOLDERS: Mapping[type, str] = {DeletedFiles: "_deleted", SeenConsumer: "_consumers"}


def now() -> datetime:
    """The time of a note, in UTC and whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
