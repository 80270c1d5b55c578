"""Why the last load of each topic failed: kept in the lake, so that `penstock status` and other processes can show it.

One small file per topic, `<lake>/<cluster>/_penstock/last_errors/<encoded topic>.json`. A failed load writes it, the
next successful load deletes it. The file only informs: no load reads it, and a load whose result cannot be kept ends
as it would have ended, with a warning. The topics' tables are not touched.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import msgspec
import pyarrow.fs as pafs

from kafka_io.errors import LocatedError
from pipelines.loading.work import SliceFailure
from resources import topic_names
from resources.lake import Lake, filesystem, lake_errors, list_folder

_FOLDER = ("_penstock", "last_errors")  # no encoded topic begins with an underscore
_SUFFIX = ".json"
_MAX_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LastError:
    """Why the last load of a topic failed.

    Args:
        run: the id of the run.
        time_ms: when it failed, in ms since 1970.
        failures: the first failures, without their stack traces.
        count: the number of all failures.
        since_ms: when the first of the loads failed that failed one after the other, in ms since 1970.
    """

    run: str
    time_ms: int
    failures: tuple[SliceFailure, ...]
    count: int
    since_ms: int = 0

    @classmethod
    def of(cls, failures: Sequence[SliceFailure], *, run: str, time_ms: int) -> Self:
        """The last error of a load with these failures; the file stays small, however many there are."""
        first = tuple(replace(failure, trace="") for failure in failures[:_MAX_FAILURES])
        return cls(run=run, time_ms=time_ms, failures=first, count=len(failures), since_ms=time_ms)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of `penstock status --json`."""
        errors = [failure.as_dict() for failure in self.failures]
        return {"run": self.run, "time_ms": self.time_ms, "errors": errors, "count": self.count}

    def __str__(self) -> str:
        and_more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return f"{self.failures[0]}{and_more}" if self.failures else "the error is unknown"


Remember = Callable[[str, LastError | None], Sequence[str]]
"""Keeps the last error of a topic, or removes it after a success (None); returns warnings."""


class LastErrors:
    """The last errors of the topics of one cluster. A loader uses one object for all topics of its run."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self._lake = lake
        self._folder = "/".join((cluster, *_FOLDER))
        self._unavailable = False

    def __call__(self, topic: str, error: LastError | None) -> Sequence[str]:
        """See Remember. After a failure of the store, the run does not use it again: a load waits at most once."""
        if self._unavailable:
            return ()
        try:
            with lake_errors(self._lake.root):
                if error is not None:
                    self._write(self._path(topic), self._continued(topic, error))
                elif self._path(topic) in self._known:
                    self._files.delete_file(self._path(topic))
        except LocatedError as failure:
            self._unavailable = True
            return (f"`penstock status` may show an old result of this load: {failure}",)
        return ()

    def read(self) -> dict[str, LastError]:
        """The last error of each topic whose last load failed.

        Raises:
            LakeUnavailable: the store does not answer.
        """
        errors = {}
        with lake_errors(self._lake.root):
            for path in self._list():
                with suppress(ValueError, FileNotFoundError):  # a file of somebody else, or one that a load has deleted
                    errors[self._topic(path)] = self._read(path)
        return errors

    @cached_property
    def _files(self) -> pafs.FileSystem:
        return filesystem(self._lake.root, self._lake.options)

    @cached_property
    def _known(self) -> frozenset[str]:
        """The files that existed when this run first asked: one request per run, instead of one per topic.

        If another run writes a file later, it stays until the topic's next load.
        """
        return frozenset(self._list())

    def _list(self) -> list[str]:
        infos = list_folder(self._files, self._folder, recursive=True)
        return [info.path for info in infos if info.type == pafs.FileType.File]

    def _continued(self, topic: str, error: LastError) -> LastError:
        """The error, since the time at which the topic began to fail."""
        if self._path(topic) not in self._known:
            return error
        earlier = self._read(self._path(topic))
        return replace(error, since_ms=earlier.since_ms or earlier.time_ms or error.since_ms)

    def _read(self, path: str) -> LastError:
        with self._files.open_input_stream(path) as file:
            data = file.read()
        try:
            return msgspec.json.decode(data, type=LastError)
        except msgspec.DecodeError:  # a crash cut the file off: that the load failed is still known
            return LastError(run="", time_ms=0, failures=(), count=0)

    def _write(self, path: str, error: LastError) -> None:
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(path) as file:
            file.write(msgspec.json.encode(error))

    def _path(self, topic: str) -> str:
        return "/".join((self._folder, *topic_names.folders(topic))) + _SUFFIX

    def _topic(self, path: str) -> str:
        return topic_names.decode_folders(path.removeprefix(f"{self._folder}/").removesuffix(_SUFFIX).split("/"))
