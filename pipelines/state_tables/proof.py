"""Verifies the state table of a topic: computes it again from the topic's table, and compares each row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from pipelines.increments.rows import all_rows
from pipelines.increments.source import NOTHING, ConsumerProgress, SourceVersion
from pipelines.ledger.failure import SliceFailure
from pipelines.state_tables.changes import KeyComparison
from pipelines.state_tables.files import StateFiles
from pipelines.state_tables.older_cells import OlderCells
from pipelines.state_tables.state_table import DELETED, POSITION, StateDefinition, state_output
from pipelines.state_tables.update import CONSUMER, DEFINITION, incarnation_numbers
from pipelines.table.lake_table import LakeTable
from pipelines.table.table_store import TableSnapshot
from resources.errors import LakeUnavailable, LoadError, SourceFilesCleaned
from resources.printed import HIDDEN
from resources.settings.topic_options import TopicOptions
from resources.stores.lake import lake_errors

_BATCH_ROWS = 32_768
_WITH_PLACE = "broker, partition, place"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProof:
    """The result of `prove_state`. The state table is proven if there is no problem.

    Args:
        table: the URI of the state table.
        version: the version of the topic's table that it has.
        keys: the number of keys that it should have.
        missing: how many of them it lacks.
        extra: how many rows it has of other keys, or of a key that has a row already.
        wrong: how many keys have another row than the newest.
        problems: sentences about them.
        failure: the error that ended the check; it is also the problem.
    """

    table: str = field(metadata=HIDDEN)
    version: int = -1
    keys: int = 0
    missing: int = 0
    extra: int = 0
    wrong: int = 0
    problems: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    failure: SliceFailure | None = field(default=None, metadata=HIDDEN)

    @property
    def proven(self) -> bool:
        """Whether the table has the newest row of each key, and nothing else."""
        return not self.problems

    @property
    def absent(self) -> bool:
        """Whether there is no state table yet. That is no fault of a table: the first update makes it (fault F17)."""
        return not self.proven and self.version < 0 and self.failure is None


def prove_state(table: LakeTable, topic: TopicOptions) -> StateProof:
    """Compare the state table with the topic's table at the version that the state table has.

    An error becomes the problem, as with `verify`.
    """
    uri = state_output(table).uri
    try:
        return _prove(table, topic)
    except LoadError as error:
        failure = SliceFailure.of(error, table.where)
        problem = f"the check of the state table did not end: {failure}"
        return StateProof(table=uri, problems=(problem,), failure=failure)


def _prove(table: LakeTable, topic: TopicOptions) -> StateProof:
    output, source = state_output(table), SourceVersion.newest(table)
    if source.snapshot.entry is None:
        return StateProof(table=output.uri)
    writer = output.begin(CONSUMER, source.name)
    again = f"run `penstock state {table.where.topic}`"
    if writer.opened is None or writer.progress == NOTHING:
        return StateProof(table=output.uri, problems=(f"there is no state table yet: {again}",))
    difference = source.difference(writer.progress)  # it fails if the state was made from another table
    # The newest version has the same rows after a compaction, and its files were not deleted (fault E04).
    is_newest = not (difference.added or difference.removed)
    snapshot = source.snapshot if is_newest else _snapshot_at(table, writer.progress)
    definition = StateDefinition.of(topic, snapshot)
    version = writer.progress.version
    if writer.mark(DEFINITION) != definition.number:
        problem = f"the state table was made with other settings: {again}, which builds it again"
        return StateProof(table=output.uri, version=version, problems=(problem,))
    assert topic.state is not None
    content = [name for name in definition.schema.names if name != POSITION]
    numbers = incarnation_numbers(table.entries(snapshot))
    with KeyComparison(definition, numbers, topic.state.memory_mib, content) as comparison:
        rows = partial(_every_row, table, snapshot, definition)
        comparison.take_rows(rows())
        files = StateFiles.of(output.uri, output.options, writer.opened)
        comparison.take_present(files, only_touched=False)
        comparison.decide(with_present=False)
        cells = OlderCells(comparison=comparison)
        cells.take(rows, files)
        return _judged(comparison, cells, output.uri, version)


def _snapshot_at(table: LakeTable, progress: ConsumerProgress) -> TableSnapshot:
    """The version of the topic's table that the state table has."""
    opened = table.opened_at(progress.version)
    return TableSnapshot(version=progress.version, entry=None, layout=opened.layout, open_table=opened)


def _every_row(
    table: LakeTable, snapshot: TableSnapshot, definition: StateDefinition, columns: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """Every row of the files of the version, with some columns, or with all and the column `_deleted`.

    An update reads only the rows that the ledger names, in files whose statistics can have them. The proof trusts
    neither of the two, so it also finds keys that an update has not seen (fault A07).
    """
    dataset = all_rows(snapshot.opened, table.lake.options, snapshot.layout.partition_column)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            with lake_errors(table.uri):
                for batch in dataset.to_batches(
                    columns, batch_size=_BATCH_ROWS, batch_readahead=2, fragment_readahead=1
                ):
                    yield batch if columns else batch.append_column(DELETED, definition.deleted(batch))
        except LakeUnavailable as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise SourceFilesCleaned(
                f"version {snapshot.version} of the table {table.uri} has lost files to housekeeping, so the state "
                f"table of this version cannot be compared: run `penstock state {table.where.topic}`, and verify again",
                table.where,
            ) from error

    every = dataset.schema.append(pa.field(DELETED, pa.bool_()))
    schema = pa.schema([every.field(name) for name in columns]) if columns else every
    return pa.RecordBatchReader.from_batches(schema, batches())


def _judged(comparison: KeyComparison, cells: OlderCells, uri: str, version: int) -> StateProof:
    same = comparison.same("newest", "present")
    names = ", ".join(f"newest.{name}" for name in ("broker", "partition", "place"))
    queries = {
        "missing": f"select {_WITH_PLACE} from newest anti join present on {same}",
        "extra": f"select {_WITH_PLACE} from present anti join newest on {same}",
        "wrong": f"select {names} from newest join found using (n) join present on {same} left join "
        f"({cells.content()}) as filled using (n) where found.content + coalesce(filled.content, 0) <> present.content "
        "or newest.effective is distinct from present.position",
    }
    sentences = {
        "missing": "{} keys have no row in the state table; the first is that of {}",
        "extra": "{} keys have a row in the state table, but none in the topic's table; the first is that of {}",
        "wrong": "{} keys do not have their newest row in the state table; the first is that of {}",
    }
    numbers, problems = dict[str, Any](), list[str]()
    for kind, query in queries.items():
        [(numbers[kind],)] = comparison.values(f"select count(*) from ({query})")
        for first in comparison.values(f"select * from ({query}) order by all limit 1"):
            problems.append(sentences[kind].format(numbers[kind], _place(*first)))
    keys = ", ".join(f"k{number}" for number in range(len(comparison.definition.keys)))
    [(rows, distinct)] = comparison.values(
        f"select coalesce(sum(number), 0), count(*) from (select count(*) as number from present group by {keys})"
    )
    if rows > distinct:
        problems.append(f"{rows - distinct} keys have a second row in the state table")
        numbers["extra"] += int(rows - distinct)
    [(keys_count,)] = comparison.values("select count(*) from newest")
    return StateProof(table=uri, version=version, keys=keys_count, problems=tuple(problems), **numbers)


def _place(broker: int, partition: int, offset: int) -> str:
    of_broker = f"broker {broker}, " if broker >= 0 else ""
    return f"{of_broker}partition {partition}, offset {offset}"
