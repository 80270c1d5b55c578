"""The certificate of an erasure: what `penstock erase --certificate` prints. It has no value of a row."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from pipelines.certificates.byte_scan import ScannedFolder
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.maintenance.erase_result import ErasedRows
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.table.lake_table import DAMAGED
from resources.printed import printed_property
from resources.quantities import count

_BESIDE = (f"{QUARANTINE_FOLDER}/", f"{DAMAGED}/", f"{STAGING_FOLDER}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedErasure:
    """One commit of a request. `before` is the version of the table before it."""

    version: int
    before: int
    time: datetime
    run: str
    rows: int
    partitions: tuple[ErasedRows, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFile:
    """A data file that the table had before the erasure, and does not have any more.

    Args:
        path: its path, relative to the table.
        is_there: whether the file still exists.
        deleted_at: when housekeeping deleted it; None if it exists, or if another program deleted it.
    """

    path: str
    is_there: bool
    deleted_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedTable:
    """One folder in a certificate: that of the table of the topic, or that of its state table.

    Args:
        table: its URI.
        topic_version: the version of the table of the topic whose rows it has.
        has_followed: whether it has the effect of the erasure.
        files: the data files from before the erasure.
        beside: copies of bytes from before the erasure, for example in `_quarantine`, which still exist.
        log_objects: the number of commit files and checkpoints that still have bounds of such files.
        has_values_in_names: whether names of columns have values of the request.
        scan: what a search of all bytes below the folder has found.
    """

    table: str
    topic_version: int
    has_followed: bool = True
    files: tuple[RemovedFile, ...] = ()
    beside: tuple[str, ...] = ()
    log_objects: int = 0
    has_values_in_names: bool = False
    scan: ScannedFolder = field(default_factory=ScannedFolder)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The files that `penstock clean` or `penstock erase --finish` still has to delete."""
        return (*(file.path for file in self.files if file.is_there), *self.beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedConsumer:
    """A consumer of increments that has left a note in the folder of the table.

    Args:
        consumer: its name.
        output: the place of its output.
        version: the version of the table whose effect its output has.
        seen_at: when it said so.
        has_followed: whether its output has the effect of the erasure.
        clean_up: how its owner removes the bytes that the output keeps of removed rows.
        scan: what a search for the values in a Delta output has found; None for others, and without values.
    """

    consumer: str
    output: str
    version: int
    seen_at: datetime
    has_followed: bool
    clean_up: str
    scan: ScannedFolder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyElsewhere:
    """A place that may have a copy of the rows, and that Penstock does not own."""

    place: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTask:
    """Something that is missing until the erasure is complete.

    Args:
        what: a sentence that also says what to do.
        until: when it is done without anybody's help; None if somebody must do it.
    """

    what: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A result of `penstock erase --certificate`.

    Args:
        topic: the topic's name.
        table: the table's URI.
        further_tables: the names of the other tables of the topic, which have erasures and certificates of their own.
        request: the request, as its user calls it.
        made_at: when the certificate was made.
        erasures: the commits that took the rows out.
        deadline: when housekeeping deletes the files from before the last of them.
        proven: whether `verify` proves the table, with no row at an erased offset.
        searched: the number of values that were searched in all bytes; None if no value was given.
        left_out: the number of given values that are too short for that: they were compared with columns only.
        tables: what is left in the folders of the table and of its state table.
        consumers: the consumers of increments that are known.
        digests: the number of erased records of which the ledger has a digest: each was the last message of a load.
        elsewhere: the places that Penstock does not own.
    """

    topic: str
    table: str
    request: str
    made_at: datetime
    erasures: tuple[CertifiedErasure, ...]
    deadline: datetime
    proven: bool
    searched: int | None = None
    left_out: int = 0
    tables: tuple[CertifiedTable, ...] = ()
    consumers: tuple[CertifiedConsumer, ...] = ()
    digests: int = 0
    elsewhere: tuple[CopyElsewhere, ...] = ()
    further_tables: tuple[str, ...] = ()

    @printed_property
    def complete(self) -> bool:
        """Whether nothing is left of the rows in what Penstock owns."""
        return not self.tasks

    @printed_property
    def tasks(self) -> tuple[OpenTask, ...]:
        """The tasks that are open until the erasure is complete."""
        return tuple(self._tasks())

    def _tasks(self) -> Iterator[OpenTask]:
        topic = self.topic
        if not self.proven:
            yield OpenTask(what=f"the table is not proven: `penstock verify {topic}` says why")
        for table in self.tables:
            yield from self._tasks_of(table)
        for consumer in self.consumers:
            if not consumer.has_followed:
                yield OpenTask(
                    what=f"the output {consumer.output} of the consumer {consumer.consumer} has version "
                    f"{consumer.version} of the table: run its increment"
                )

    def _tasks_of(self, table: CertifiedTable) -> Iterator[OpenTask]:
        topic, waiting = self.topic, set(table.waiting)
        if not table.has_followed:
            yield OpenTask(what=f"the state table {table.table} still has the rows: run `penstock state {topic}`")
            return
        if waiting or table.log_objects:
            yield OpenTask(
                what=f"{table.table} has {count(len(waiting))} files and {count(table.log_objects)} objects of its log "
                f"from before the erasure: `penstock clean {topic} --delete` removes them after "
                f"housekeeping.erase_days, `penstock erase {topic} --finish` now",
                until=self.deadline,
            )
        if table.has_values_in_names:
            yield OpenTask(
                what=f"{table.table} has columns whose names are values of the request, and no command removes a "
                "column: name the field in `personal`, move the folder of the table away, and load the topic again"
            )
            return
        # The tasks above name what waits for its deletion. No other object may have the rows.
        hits = {hit.path for hit in table.scan.hits} - waiting - _logged(table)
        kept = sorted(path for path in hits if path.startswith(_BESIDE))
        if kept:
            yield OpenTask(
                what=f"{table.table} has values of the request in {kept[0]} and {count(len(kept) - 1)} more files that "
                "are younger than the erasure: delete them, no reader and no load needs them"
            )
        left = sorted(hits.difference(kept))
        if left:
            yield OpenTask(
                what=f"{table.table} has rows or values of the request in {left[0]} and {count(len(left) - 1)} more "
                "objects: erase them with the same request, with --also-raw if no condition names the place, or wait "
                "until `penstock clean` deletes files of killed runs"
            )
        if table.scan.unsearched:
            yield OpenTask(
                what=f"{table.scan.unsearched[0]} and {count(len(table.scan.unsearched) - 1)} more objects in "
                f"{table.table} cannot be searched: delete them, or find out what they have"
            )


def _logged(table: CertifiedTable) -> set[str]:
    """The hits in objects of the log that wait for the end of the erasure."""
    return {hit.path for hit in table.scan.hits if hit.path.startswith("_delta_log/")} if table.log_objects else set()
