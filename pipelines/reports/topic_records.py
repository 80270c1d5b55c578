"""Small records about topics, kept in the lake beside the tables: one JSON file per topic.

The files are `<lake>/<cluster>/_penstock/<folder>/<encoded topic>.json`. They only inform: no load reads them, and
anybody may delete them.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import Generic, TypeVar

import msgspec
import pyarrow.fs as pafs

from kafka_io.typed_json import decode_json
from resources import topic_names
from resources.stores.lake import Lake, each_of, filesystem, list_folder, tables_at_once, write_file

_FOLDER = "_penstock"  # no encoded topic begins with an underscore
_SUFFIX = ".json"

RecordT = TypeVar("RecordT")


class TopicRecords(Generic[RecordT]):
    """The records of one kind about the topics of one cluster. Its methods raise what the store raises.

    Args:
        lake: the lake.
        cluster: the name of the cluster.
        folder: the folder of the records.
        type_: the type of a record.
    """

    def __init__(self, lake: Lake, cluster: str, folder: str, type_: type[RecordT]) -> None:
        self.lake = lake
        self._folder = f"{cluster}/{_FOLDER}/{folder}"
        self._type = type_

    @cached_property
    def known(self) -> frozenset[str]:
        """The topics that had a record when this object was first asked: one request, instead of one per topic."""
        return frozenset(self.topics())

    def topics(self) -> Iterator[str]:
        """The topics that have a record now."""
        for info in list_folder(self._files, self._folder, recursive=True):
            path = info.path.removeprefix(f"{self._folder}/").removesuffix(_SUFFIX)
            if info.type == pafs.FileType.File:
                try:
                    yield topic_names.decode_folders(path.split("/"))
                except ValueError:  # a file of somebody else
                    continue

    def read(self, topic: str) -> RecordT | None:
        """The record of a topic; None if its file is damaged, for example because a crash cut it off.

        Raises:
            FileNotFoundError: the topic has no record.
        """
        with self._files.open_input_stream(self._path(topic)) as file:
            data = file.read()
        try:
            return decode_json(data, self._type)
        except msgspec.DecodeError:
            return None

    def read_all(self) -> dict[str, RecordT | None]:
        """All records by topic. In an object store, several files are read at the same time."""
        root = self.lake.root
        records = each_of(root, self._read_if_there, list(self.topics()), at_once=tables_at_once(root))
        return dict(chain.from_iterable(records))

    def _read_if_there(self, topic: str) -> list[tuple[str, RecordT | None]]:
        try:
            return [(topic, self.read(topic))]
        except FileNotFoundError:  # it was deleted after it was listed
            return []

    def write(self, topic: str, record: RecordT) -> None:
        """Replace the record of a topic."""
        write_file(self._files, self._path(topic), msgspec.json.encode(record))

    def delete(self, topic: str) -> None:
        """Remove the record of a topic, which has one."""
        self._files.delete_file(self._path(topic))

    @cached_property
    def _files(self) -> pafs.FileSystem:
        return filesystem(self.lake.root, self.lake.options)

    def _path(self, topic: str) -> str:
        return "/".join((self._folder, *topic_names.folders(topic))) + _SUFFIX
