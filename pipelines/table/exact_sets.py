"""Exact sets in the entries of the ledger, or in files beside the data of a table.

A set of few bytes is a text in the entry. A larger one is a file in a folder that readers of the table do not see. The
file is written and forced to disk before the commit that names it, like a data file, and never changes.
"""

import hashlib
import re
import uuid
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kafka_io.model import BrokerPartition, OffsetRange
from pipelines.ledger.committed_range import CommittedRange, ExactCause, StoredSet
from pipelines.ledger.exact_offsets import MAX_ENCODED_BYTES, NO_OFFSETS, ExactOffsets
from resources.errors import ExactSetLost
from resources.failpoints import failpoint
from resources.stores import durable
from resources.stores.table_files import table_errors, table_files

OFFSETS_FOLDER = "_offsets"
"""The folder inside a table for sets of offsets. Delta's vacuum ignores names that begin with an underscore.

Housekeeping keeps the files that an entry of the ledger names.
"""
_MAX_INLINE_BYTES = 256
_PATH = re.compile(rf"{OFFSETS_FOLDER}/[0-9a-f]{{32}}\.offsets")

ReadBytes = Callable[[str], bytes]
"""Reads a file of a table."""


def store_exact(uri: str, options: Mapping[str, str], offsets: ExactOffsets) -> StoredSet:
    """Store a set in the table at `uri`; returns the reference for an entry.

    Raises:
        LakeUnavailable: the store does not take the file.
        ExactSetLost: nobody could read so large a set.
    """
    if inline := inline_exact(offsets):
        return inline
    data = offsets.encode()
    digest = hashlib.sha256(data).hexdigest()
    if len(data) > MAX_ENCODED_BYTES:
        raise ExactSetLost(f"{offsets.count:,} offsets are too many for one set: use smaller slices, or fewer rows")
    # The name is new at each attempt, so a run never changes a file that the entry of another run names already.
    path = f"{OFFSETS_FOLDER}/{uuid.uuid4().hex}.offsets"
    from resources.stores.lake import write_file  # noqa: PLC0415 - it imports deltalake, which other workers do not need

    with table_errors(uri):
        write_file(table_files(uri, options), path, data)
        failpoint("offsets written")
        durable.sync_file(uri, path)
    return StoredSet(sha256=digest, size=len(data), path=path)


def inline_exact(offsets: ExactOffsets) -> StoredSet | None:
    """The reference to a set that an entry can hold as a text; None if the set needs a file."""
    # Each element takes one byte at least, so large sets are not encoded for this question.
    data = offsets.encode() if len(offsets.firsts) < _MAX_INLINE_BYTES else b""
    if not data or len(data) > _MAX_INLINE_BYTES:
        return None
    return StoredSet(sha256=hashlib.sha256(data).hexdigest(), size=len(data), inline=b64encode(data).decode())


class ExactSets:
    """Reads the exact sets of a table. The last one is kept, because ranges of one entry often share a file."""

    def __init__(self, read: ReadBytes) -> None:
        self._read = read
        self._last: tuple[StoredSet | None, ExactOffsets] = None, NO_OFFSETS

    @classmethod
    def at(cls, uri: str, options: Mapping[str, str]) -> "ExactSets":
        """The sets of the table at this URI."""

        def read(path: str) -> bytes:
            with table_errors(uri), table_files(uri, options).open_input_file(path) as file:
                return bytes(file.read(MAX_ENCODED_BYTES))  # something else may be in its place, of any size

        return cls(read)

    def of(self, stored: StoredSet) -> ExactOffsets:
        """A stored set.

        Raises:
            ExactSetLost: it is missing or damaged.
            LakeUnavailable: the store does not answer.
        """
        known, offsets = self._last
        if known != stored:
            offsets = ExactOffsets.decode(self._bytes(stored))
            self._last = stored, offsets
        return offsets

    def _bytes(self, stored: StoredSet) -> bytes:
        # Anyone who can write an entry could otherwise make this process read any file of the store.
        if stored.path and not _PATH.fullmatch(stored.path):
            raise ExactSetLost(f"the ledger names {stored.path} as a set of offsets, which no Penstock has written")
        name = f"the file {stored.path}" if stored.path else "a set of offsets in the ledger"
        try:
            data = self._read(stored.path) if stored.path else b64decode(stored.inline)
        except ValueError as error:
            raise ExactSetLost(f"{name} is damaged: {error}") from error
        except Exception as error:
            # Only a file that is certainly gone is lost: a store that does not answer may answer the next run.
            if isinstance(error.__cause__ or error, FileNotFoundError):
                raise ExactSetLost(
                    f"{name}, which has the offsets of rows that are not in the table, is gone"
                ) from error
            raise
        if len(data) != stored.size or hashlib.sha256(data).hexdigest() != stored.sha256:
            raise ExactSetLost(f"{name} is damaged: its content is not the one that its entry recorded")
        return data

    def within(self, committed: CommittedRange) -> Mapping[ExactCause, ExactOffsets]:
        """The sets of a range, each without the offsets outside of the range.

        Raises:
            ExactSetLost, LakeUnavailable: see `of`.
        """
        return {cause: self.of(stored).within(committed.offsets) for cause, stored in sorted(committed.exact.items())}

    def of_ranges(self, ranges: Iterable[CommittedRange], offsets: OffsetRange) -> Mapping[ExactCause, ExactOffsets]:
        """The sets of ranges of one partition together, without what is outside of some offsets.

        Raises:
            ExactSetLost, LakeUnavailable: see `of`.
        """
        by_cause: dict[ExactCause, list[ExactOffsets]] = defaultdict(list)
        for committed in ranges:
            part = committed.offsets.intersection(offsets) if committed.exact else None
            for cause, own in self.within(replace(committed, offsets=part)).items() if part else ():
                by_cause[cause].append(own)
        together = {cause: ExactOffsets.union(sets) for cause, sets in by_cause.items()}
        return {cause: own for cause, own in together.items() if own.count}


def with_shared_sets(
    ranges: Iterable[tuple[CommittedRange, Mapping[ExactCause, ExactOffsets]]],
    store: Callable[[ExactOffsets], StoredSet],
) -> list[CommittedRange]:
    """The ranges of one entry with these exact sets in place of those of the same causes.

    Sets of other causes stay where they are stored. Large sets of a partition with the same cause share a file.
    """
    sets = list(ranges)
    large: dict[tuple[BrokerPartition, ExactCause], list[ExactOffsets]] = defaultdict(list)
    for committed, by_cause in sets:
        for cause, own in by_cause.items():
            if inline_exact(own) is None:
                large[committed.partition, cause].append(own)
    shared = {place: store(ExactOffsets.union(own)) for place, own in large.items()}

    def with_sets(committed: CommittedRange, by_cause: Mapping[ExactCause, ExactOffsets]) -> CommittedRange:
        own = {cause: offsets for cause, offsets in by_cause.items() if offsets.count}
        gaps = {cause: count for cause, count in committed.gaps.items() if cause not in by_cause}
        exact = {cause: stored for cause, stored in committed.exact.items() if cause not in by_cause}
        return replace(
            committed,
            gaps=gaps | {str(cause): offsets.count for cause, offsets in own.items()},
            exact=exact
            | {cause: inline_exact(offsets) or shared[committed.partition, cause] for cause, offsets in own.items()},
        )

    return [with_sets(committed, by_cause) for committed, by_cause in sets]
