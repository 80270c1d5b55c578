"""Reading around messages and batches that cannot be read, because they are corrupt or too large.

Everything before such a message or batch is read. Whether the read continues after it is the user's choice; its bytes
are then kept in the table's folder, where no reader of the table and no housekeeping touches them.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from kafka_io.errors import LocatedError, TooLarge
from kafka_io.model import OffsetRange
from kafka_io.reader.reader import PlannedRange, Reader
from kafka_io.reader.unreadable import UnreadableRange, is_unreadable
from kafka_io.records.decoded_batch import DecodedBatch
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.ledger import RecordedChoice
from resources.stores import durable
from resources.stores.table_files import table_errors, table_files

QUARANTINE_FOLDER = "_quarantine"
"""The folder inside a table for bytes that were skipped. Delta ignores names that begin with an underscore.

Housekeeping keeps the files that an entry of the ledger names.
"""
GAPS = {"on_corrupt": "corrupt", "on_too_large": "too large"}
"""The choices about unreadable records, with the cause of the gap that each leaves."""
_MAX_SKIPS = 100  # per slice, because the Delta log stores a receipt of each skip
_NO_ROWS = pa.RecordBatch.from_pylist([], schema=pa.schema([]))

Decide = Callable[[LocatedError, UnreadableRange], str]
"""Decides about a range: returns the cause of the gap that it leaves, or raises the error."""


def readable_batches(
    reader: Reader, planned: PlannedRange, batches: Iterator[DecodedBatch], skip: Decide
) -> Iterator[DecodedBatch]:
    """The batches of the planned range; a range that `skip` lets pass is a batch without rows.

    Args:
        reader: reads the range again from the offset that was reached.
        planned: the range.
        batches: its batches, from a read that has begun.
        skip: called for each range that cannot be read, after everything before it was given.

    Raises:
        KafkaIOError: the range cannot be read, or `skip` raised it.
    """
    position, stop = planned.offsets.start, planned.offsets.stop
    # `target` is the end of the read that goes on now. `resumed_at` is where a read began again although the broker
    # showed nothing that is damaged.
    target, failure, resumed_at = stop, None, -1
    while True:
        try:
            for decoded in batches:
                position = decoded.next_offset
                yield decoded
                del decoded  # see fetch.py
        except LocatedError as error:
            if not is_unreadable(error):
                raise
            failure, offset = error, error.where.offset or 0
            if position < offset < target:
                # The decoder has dropped the rows of the batches before the one that it could not decode.
                target, batches = offset, _read(reader, planned, position, offset)
                continue
        if failure is None:
            return
        # The broker is asked again for these bytes alone: they may have been damaged on their way. Then nothing may be
        # skipped (fault N03).
        damaged = reader.unreadable(planned, position)
        if damaged.start < damaged.stop:
            gaps = {skip(failure, damaged): damaged.stop - damaged.start}
            position = damaged.stop
            yield DecodedBatch(_NO_ROWS, position, gaps)
            resumed_at = -1
        # The entry can be read alone, but not in its range, for the second time. To try again would never end.
        elif position == resumed_at:
            raise failure
        else:
            resumed_at = position  # what can be read from here is read again, but only once
        target, failure = stop, None
        batches = _read(reader, planned, position, stop)


def _read(reader: Reader, planned: PlannedRange, start: int, stop: int) -> Iterator[DecodedBatch]:
    if start >= stop:
        return iter(())
    [batches] = reader.read([replace(planned, offsets=replace(planned.offsets, start=start, stop=stop))])
    return batches


class SkipByChoice:
    """Decides for a slice by the user's choices, and keeps the bytes of what is skipped. `skipped` are the receipts."""

    def __init__(self, task: FetchTask) -> None:
        self._task = task
        self.skipped: list[RecordedChoice] = []

    def __call__(self, error: LocatedError, unreadable: UnreadableRange) -> str:
        """Skip the range if the user chose so, and return the cause of the gap.

        Raises:
            LocatedError: the user did not choose so, or the slice has too many such ranges. The message says how to
                continue.
        """
        setting = "on_too_large" if isinstance(error, TooLarge) else "on_corrupt"
        where = error.where.at_offset(unreadable.start)
        if setting not in self._task.skip:
            larger = "raise that limit in [caps], or " if setting == "on_too_large" else ""
            reason = f'{error.reason}; {larger}set {setting} = "skip" to continue at offset {unreadable.stop}'
            raise type(error)(reason, where, *error.args[2:])
        if len(self.skipped) == _MAX_SKIPS:
            reason = f"{_MAX_SKIPS} ranges of the slice were skipped; load again to continue: {error.reason}"
            raise type(error)(reason, where, *error.args[2:])
        offsets = OffsetRange(self._task.offsets.partition, unreadable.start, unreadable.stop)
        # What is above `max_fetch_bytes` cannot be fetched, so there is nothing to keep (fault N04).
        path = _kept(self._task, offsets, unreadable.data) if unreadable.data else None
        self.skipped.append(RecordedChoice.of(setting, "skip", offsets, reason=error.reason, path=path))
        return GAPS[setting]

    def discard(self) -> None:
        """Delete the kept bytes, because the slice is fetched again, and keeps them again (fault E12)."""
        files = table_files(self._task.table_uri, self._task.options)
        for choice in self.skipped:
            if choice.path:
                with suppress(FileNotFoundError):  # housekeeping may have deleted it
                    files.delete_file(choice.path)


def _kept(task: FetchTask, offsets: OffsetRange, data: bytes) -> str:
    """Write the bytes that the broker gave for the offsets to a file; its path in the table."""
    from resources.stores.lake import write_file  # noqa: PLC0415 - it imports deltalake, which other workers do not need

    files = table_files(task.table_uri, task.options)
    name = f"{offsets.partition}-{offsets.start:020d}-{offsets.stop:020d}-{uuid.uuid4().hex}.bytes"
    path = f"{QUARANTINE_FOLDER}/{name}"
    with table_errors(task.table_uri):
        write_file(files, path, data)
    # The receipt in the ledger names this file, so it must survive a loss of power like the data files (fault L10).
    local = durable.local_path(task.table_uri)
    if local is not None:
        durable.sync_below(local, local / path)
    return path
