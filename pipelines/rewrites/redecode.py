"""Redecode: decode the kept bytes of bad records again, after their schema or their format was corrected.

No broker is asked. The rows keep their offsets and their loading times, so the ledger's ranges do not change. Each step
replaces the rows of a few ranges in one entry of the log, with the columns that the new rows need. A killed run leaves
the table as the last entry left it, and what it has decoded is not bad any more, so a repeated run continues.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_io.errors import LocatedError
from pipelines.commit.commit import Change, columns_to_add, commit
from pipelines.fetch.decode_plan import check_format
from pipelines.fetch.decoding import Decoding, OpenRegistry
from pipelines.fetch.typed_rows import IncompletePlan
from pipelines.layout.columns import missing_columns
from pipelines.ledger.committed_range import CommittedRange, LoadedRange
from pipelines.ledger.failure import SliceFailure
from pipelines.ledger.ledger import CommitKind, LedgerEntry
from pipelines.ledger.slice_facts import DataFile, DecodingNeeds, SliceFacts
from pipelines.plan.valid_through import moved_back
from pipelines.rewrites.bad_rows import BadRanges, RowsDecodedAgain, count_without_bytes, find_bad_ranges
from pipelines.rewrites.redecode_result import DecodedAgain, TopicRedecode
from pipelines.rewrites.staging import remove_staged, staging_folder
from pipelines.rules.row_rules import RowRules
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot, TableStore
from resources.errors import CommitRefused, RedecodeRefused, TableMissing
from resources.failpoints import failpoint
from resources.settings.topic_formats import TopicFormat
from resources.stores.lake import filesystem, lake_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class RedecodeRequest:
    """What to decode again, and how.

    Args:
        table: the topic's table.
        format: the present format of the topic.
        open_registry: opens a schema registry by its name in the settings.
        run: the run's id in the ledger.
        dry_run: only count which records decode.
        on_progress: is called with how many of how many steps are done.
    """

    table: LakeTable
    format: TopicFormat
    open_registry: OpenRegistry
    run: str
    dry_run: bool = False
    on_progress: Callable[[int, int], None] = lambda _done, _total: None


def redecode(request: RedecodeRequest) -> TopicRedecode:
    """Decode all bad records of a typed table again. An error is in the result; only interruptions are raised."""
    return Redecode(request).result(decode_bad_records)


class Redecode:
    """A run that decodes records again, and what it has done so far.

    Attributes:
        request: what the run does.
        total: the counts of all steps.
    """

    def __init__(self, request: RedecodeRequest) -> None:
        self.request = request
        self.total = DecodedAgain()
        self._result = TopicRedecode(
            topic=request.table.where.topic or "", table=request.table.uri, dry_run=request.dry_run
        )

    def result(self, steps: Callable[[Self], None]) -> TopicRedecode:
        """The result after all steps, or after those before an error."""
        began = monotonic()
        try:
            steps(self)
        except LocatedError as error:
            self._result = replace(self._result, failure=SliceFailure.of(error, self.request.table.where))
        return replace(
            self._result,
            decoded=self.total.decoded,
            bad_records=sum(self.total.bad.values()),
            bad=dict(self.total.bad.most_common()),
            seconds=round(monotonic() - began, 3),
        )

    def snapshot(self) -> TableSnapshot:
        """The newest version of the table.

        Raises:
            TableMissing: there is no table, or nothing was loaded into it.
            LoadError: no load can continue from the table.
        """
        snapshot = self.request.table.existing()
        if snapshot is None or snapshot.entry is None:
            raise TableMissing("the topic has no rows to decode again: load it first", self.request.table.where)
        snapshot.check_unchanged(self.request.table.where)
        self._result = replace(self._result, version=snapshot.version)
        return snapshot

    def warn_of_lost_bytes(self, records: int) -> None:
        """Note how many records no redecode can decode."""
        if records:
            sentence = (
                f"{records} records that did not decode stay as they are: by the rules in [topics.NAME.load] the table "
                "does not have their bytes; `penstock replay` reads them again while the brokers have them"
            )
            self._result = replace(self._result, warnings=(*self._result.warnings, sentence))

    def note(self, decoding: Decoding, snapshot: TableSnapshot, version: int) -> None:
        """Note what a step on top of `snapshot` did, which left the table in `version`."""
        assert decoding.plan is not None
        added = missing_columns(snapshot.layout.values, decoding.plan.stored).names
        self._result = replace(
            self._result,
            version=version,
            columns=tuple(dict.fromkeys([*self._result.columns, *added])),
            warnings=tuple(dict.fromkeys([*self._result.warnings, *decoding.warnings])),
        )


def decode_bad_records(run: Redecode) -> None:
    """The steps of a run that decodes the bad records of a typed table.

    Raises:
        LoadError: a step failed. The steps before it are committed.
    """
    request, snapshot = run.request, run.snapshot()
    table = request.table
    if not snapshot.layout.is_typed:
        raise RedecodeRefused(
            f"the table {table.uri} is raw, so it has no records that did not decode; `penstock redecode "
            f"{table.where.topic} --all` makes it a typed table",
            table.where,
        )
    check_format(request.format, snapshot, table.uri)
    rules = RowRules.of(request.format)
    run.warn_of_lost_bytes(count_without_bytes(snapshot, table.uri, rules))
    steps = find_bad_ranges(snapshot, table.uri, rules)
    failpoint("redecode planned")
    for number, bad in enumerate(steps, 1):
        snapshot = table.newer(snapshot)
        step = _Step(request, snapshot, bad, number)
        step.stage()
        failpoint("redecode staged")
        run.total.add(step.counts)
        if step.counts.changed:
            run.note(step.decoding, snapshot, snapshot.version if request.dry_run else step.commit())
        request.on_progress(number, len(steps))
    remove_staged(table, staging_folder(request.run))


class _Step:
    """Decodes the bad records of some ranges again, and commits them.

    Attributes:
        decoding: how they are decoded.
        counts: the number of records that decode now, and of those that do not.
    """

    def __init__(self, request: RedecodeRequest, snapshot: TableSnapshot, bad: BadRanges, number: int) -> None:
        self.decoding = Decoding(request.format, snapshot, request.open_registry)
        self.counts = DecodedAgain()
        self._request = request
        self._snapshot = snapshot
        self._bad = bad
        self._folder = f"{staging_folder(request.run)}{number}/{snapshot.layout.folder(bad.day)}"
        self._facts: list[SliceFacts] = []

    def stage(self) -> None:
        """Write the rows into files that no reader of the table finds. A dry run writes nothing.

        The registry is asked for unknown ids of schemas, and fields without a column get one; then all is decoded
        again.

        Raises:
            KafkaIOError: the registry does not answer.
            LakeUnavailable: the store does not answer.
        """
        needs: list[DecodingNeeds] | None = None
        while needs is None or needs:
            self.decoding.learn_from(needs or ())
            assert self.decoding.plan is not None
            self.counts, self._facts, needs = DecodedAgain(), [], []
            rows = RowsDecodedAgain(self._snapshot, self.decoding.plan, self._request.table.uri)
            for number, committed in enumerate(self._bad.ranges):
                try:
                    self._facts += self._staged(rows, committed, f"{self._folder}/{number}.parquet")
                except IncompletePlan as error:
                    needs.append(error.needs)

    def _staged(self, rows: RowsDecodedAgain, committed: CommittedRange, path: str) -> Sequence[SliceFacts]:
        """The facts of the file with the rows of a range, which it writes; none if another run took the rows away."""
        batches = rows.of(committed, self.counts)
        if self._request.dry_run:
            for _ in batches:
                pass
            return []
        table, count = self._request.table, 0
        store = filesystem(table.uri, table.lake.options)
        with lake_errors(table.uri):
            store.create_dir(self._folder, recursive=True)
            with store.open_output_stream(path) as stream:
                with pq.ParquetWriter(stream, rows.schema, compression="zstd") as file:
                    for batch in batches:
                        count += batch.num_rows
                        file.write_batch(batch)
                size = stream.tell()
        if not count:
            return []
        written = CommittedRange(offsets=committed.offsets, rows=count, loaded_at_us=committed.loaded_at_us)
        staged = DataFile(path=path, size=size, rows=count)
        return [SliceFacts(range=written, files=(staged,))]

    def commit(self) -> int:
        """Replace the rows of the ranges by the staged ones; returns the new version.

        Raises:
            CommitRefused: another run has changed rows since the snapshot.
        """
        entry, plan = self._snapshot.entry, self.decoding.plan
        assert entry is not None
        assert plan is not None
        change = RedecodeChange(
            state=entry.state,
            facts=tuple(self._facts),
            run=self._request.run,
            columns=plan.stored,
            schemas=self.decoding.schema_ids,
            rules=self.decoding.rules.recorded(),
            table=self._request.table,
            staged_from=self._snapshot,
        )
        return commit(self._request.table, self._snapshot, change).version


@dataclass(frozen=True, slots=True, kw_only=True)
class RedecodeChange(Change):
    """Replaces rows by the same rows decoded again. It moves no cursor, and changes no range of the ledger.

    Args:
        columns: the columns for fields that the new rows have.
        table: the table.
        staged_from: the snapshot whose rows were decoded.
    """

    kind: CommitKind = CommitKind.REDECODE
    columns: pa.Schema
    table: LakeTable
    staged_from: TableSnapshot

    def complete(
        self, entry: LedgerEntry, table: TableStore, snapshot: TableSnapshot
    ) -> tuple[LedgerEntry, Sequence[CommittedRange]]:
        """The completed entry, and what it replaces. The snapshot must have as many rows as the new files.

        Otherwise another program has added or deleted rows, and the commit would lose rows or bring deleted ones back.
        """
        columns = columns_to_add(self.state, snapshot, self.columns)
        ranges = [facts.range for facts in self.facts]
        for committed, rows in zip(ranges, table.count_rows(snapshot, ranges), strict=True):
            if rows != committed.rows:
                raise CommitRefused(
                    f"{committed} has {rows} rows now, and {committed.rows} were decoded again; run again",
                    self.state.topic.where,
                )
        offsets = [committed.offsets for committed in ranges]
        event_time = moved_back(self.state, table, snapshot, offsets, by=self.kind)
        written = tuple(map(LoadedRange.of, ranges))
        return replace(entry, state=replace(entry.state, event_time=event_time), columns=columns, written=written), ()

    def rebased(self, newest: TableSnapshot) -> Self:
        """The same change on top of loads and compactions, which change no rows.

        Raises:
            CommitRefused: another commit has changed rows.
        """
        commits = self.table.commits(newest.version, after=self.staged_from.version)
        changed = next((other for other in commits if other.changed_rows), None)
        if changed is not None or newest.entry is None:
            version = newest.version if changed is None else changed.version
            raise CommitRefused(
                f"version {version} of the table changed rows meanwhile; run again", self.state.topic.where
            )
        return replace(self, state=newest.entry.state)
