"""The laws of a typed table: its columns only grow, and each row holds its value, or the bytes and the reason.

The law knows what each record was sent with. It does not know how Penstock names columns, except that the columns of a
field have its name, or its name and a number.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafka_io.model import BrokerPartition, OffsetRange
from kafka_io.values.columns import field_name
from kafka_io.values.debezium.columns import OP, TS_MS
from kafka_io.values.json.reading import JsonReading, reading_of
from pipelines.fetch.fetch_task import FetchTask
from pipelines.ledger.ledger import LedgerEntry
from pipelines.ledger.slice_facts import SliceFacts
from pipelines.reports.outcome import TopicLoad
from resources.settings.topic_formats import TopicFormat
from tests.simulation.broken import require
from tests.simulation.brokers import Answers, SimCluster
from tests.simulation.store import Row, SimStore
from tests.simulation.values import KINDS, REGISTERED, Encoding, SimValue

_TYPES = {"long": pa.int64(), "string": pa.string(), "boolean": pa.bool_()}
_CONFLICT = re.compile(r"the table has a column (\S+) (of type|for the field) (\S+), not (?:for )?(\S+)\)")
_UNKNOWN_SCHEMA = "has no schema with the id"

RowId = tuple[BrokerPartition, int, int]


@dataclass(slots=True, kw_only=True)
class ColumnsLaw:
    """Checks each version of a typed table, and how its runs fetch and report.

    Args:
        answers: what each run was answered.
        formats: the format of the topic, as each run had it.
        fetched_rows: how many rows each run has fetched.
        bad_rows: how many rows each run has committed whose value does not decode.
        unresolved: of each fetched slice of a step, whether it has schemas that were not known.
        cells: the cells of each row of the table, as its commit wrote it.
        checked: the files whose rows were checked.
    """

    cluster: SimCluster
    store: SimStore
    answers: Mapping[str, Answers]
    formats: dict[str, TopicFormat] = field(default_factory=dict)
    fetched_rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bad_rows: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unresolved: dict[tuple[str, int, OffsetRange], bool] = field(default_factory=dict)
    cells: dict[RowId, tuple[tuple[str, object], ...]] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)

    def note_fetch(self, run: str, works: Sequence[FetchTask], facts: Sequence[SliceFacts]) -> None:
        """Check that nothing is fetched twice in a step, except slices whose schemas were not known at first."""
        for work in works:
            key = (run, work.loaded_at_us, work.offsets)
            require(self.unresolved.get(key, True), f"{run} fetched {work.offsets} again without a reason")
            self.unresolved[key] = False
        for slice_facts in facts:
            key = (run, works[0].loaded_at_us, slice_facts.offsets)
            self.unresolved[key] = slice_facts.needs is not None
            self.fetched_rows[run] += slice_facts.rows

    def check(self, version: int) -> None:
        """Check the version, which was just written.

        Raises:
            Broken: a law is broken.
        """
        if not self.store.is_typed:
            return
        now, before = self.store.versions[version], self.store.versions[version - 1]
        if now.entry is None:
            require(now.columns.equals(before.columns), "another writer changed the columns")
        elif now.entry.target is not None:
            require(
                now.columns.equals(self.store.versions[now.entry.target].columns),
                f"version {version} restores version {now.entry.target}, but not its columns",
            )
        else:
            self._check_growth(now.entry, before.columns, now.columns)
        for path in now.files:
            if path not in self.checked or not now.columns.equals(before.columns):
                self._check_fits(path, now.columns)
        for path in now.files.keys() - self.checked:
            self.checked.add(path)
            for row in now.files[path]:
                self._check_row(row, now.entry, self.store.file_columns[path])
        if now.entry is not None:
            self._check_limits(now.entry.run)
            self._check_schemas(now.entry, version)

    @staticmethod
    def _check_growth(entry: LedgerEntry, before: pa.Schema, now: pa.Schema) -> None:
        """Check that columns are only added, as the entry says, and that no name has two meanings."""
        require(list(now)[: len(before)] == list(before), f"the columns {before} became {now}")
        added, stated = now.names[len(before) :], [column["name"] for column in entry.columns]
        require(added == stated, f"{entry.run} added the columns {added}, and recorded {stated}")
        names = [name.casefold() for name in now.names]
        require(len(set(names)) == len(names), f"two columns have the same name: {now.names}")

    def _check_fits(self, path: str, columns: pa.Schema) -> None:
        """Check that readers of the table see all columns of a file, with their types."""
        for column in self.store.file_columns[path]:
            there = columns.field(column.name).type if column.name in columns.names else None
            require(
                there == column.type,
                f"{path} has a column {column.name} of type {column.type}, which is {there} in the table",
            )

    def _check_row(self, row: Row, entry: LedgerEntry | None, columns: pa.Schema) -> None:
        """Check that a row holds the value of its record; a row that another file had before has to stay the same."""
        id_ = (row.id, row.offset, row.loaded_at_us)
        if id_ in self.cells:
            require(row.cells == self.cells[id_], f"{row} was rewritten, and had {self.cells[id_]}")
            return
        require(entry is not None, f"{row} came without a commit of Penstock")
        assert entry is not None
        assert self.cluster.values is not None
        self.cells[id_] = row.cells
        value, cells = self.cluster.values.by_payload[row.payload], dict(row.cells)
        error = cells.get("_error")
        if error is None:
            cells_of = _CELLS[self.cluster.values.encoding]
            require(cells == cells_of(value, row.payload, columns), f"{row} should hold {value}")
        else:
            self.bad_rows[entry.run] += 1
            require(cells == {"_error": error, "_raw": value.data}, f"{row} should keep the bytes of {value}")
            require(bool(str(error).strip()) and str(error).isprintable(), f"{row} has no reason")
        if value.schema is not None and self.cluster.values.encoding not in REGISTERED:
            require(error is None, f"{row} should hold {value}, and has the error {error}")
        elif value.schema is not None:
            self._check_resolved(row, value.schema.id, error, entry)

    def _check_resolved(self, row: Row, schema_id: int, error: object, entry: LedgerEntry) -> None:
        """Check that a value is undecodable only if the registry said so, and that the ledger has the ids of others."""
        is_known = self.answers[entry.run].schemas.get(schema_id)
        require(
            is_known == (error is None) and (error is None or _UNKNOWN_SCHEMA in str(error)),
            f"{row} was decoded with {error} although the registry answered {is_known} about {schema_id}",
        )
        require(error is not None or schema_id in entry.schemas.values, f"the ledger does not have the schema of {row}")

    def _check_limits(self, run: str) -> None:
        """Check that a run commits no more records that do not decode than its settings allow."""
        bad, rows, format_ = self.bad_rows[run], self.fetched_rows[run], self.formats.get(run, TopicFormat())
        most = rows * format_.max_bad_share if format_.max_bad_records is None else format_.max_bad_records
        if format_.bad_records == "fail":
            most = 0
        require(bad <= most, f"{run} committed {bad} of {rows} rows that do not decode, but {format_} allows {most}")

    def _check_schemas(self, entry: LedgerEntry, version: int) -> None:
        known = next((entry.schemas.values for _, entry in self.store.logged_entries(version - 1)), ())
        require(
            set(known) <= set(entry.schemas.values),
            f"the ledger forgot a schema: {known} became {entry.schemas.values}",
        )

    def check_report(self, run: str, load: TopicLoad) -> None:
        """Check what a load reports about records that do not decode, and why it says that a column is in its way."""
        if load.version is not None and not load.failures:
            require(
                load.bad_records == self.bad_rows[run],
                f"{run} reported {load.bad_records} records that do not decode, and committed {self.bad_rows[run]}",
            )
        for failure in load.failures:
            if failure.kind == "BadRecords":
                require(self._may_be_bad(run), f"{run} failed without a bad record: {failure}")
            conflict = _CONFLICT.search(failure.reason)
            if conflict:
                self._check_conflict(run, *conflict.groups())

    def _may_be_bad(self, run: str) -> bool:
        format_ = self.formats[run]
        return format_.bad_records == "fail" or format_.max_bad_records is not None or format_.max_bad_share < 1

    def _check_conflict(self, run: str, name: str, kind: str, there: str, wanted: str) -> None:
        """Check that a run is refused only if another run gave the same column another type or field (fault U05)."""
        column = self.store.versions[self.store.shown].columns.field(name)
        there_now = str(column.type) if kind == "of type" else field_name(column)
        require(there_now == there != wanted, f"{run} was refused because of {name}, but it is {there_now}")


def _cells(value: SimValue, payload: int, columns: pa.Schema) -> dict[str, Any]:
    """The cells that a value must have: each field is in the column of its name that has its type."""
    if value.data is None:
        return {"_tombstone": True}
    fields = value.schema.fields if value.schema else {}
    return {
        column: KINDS[kind].value(payload) for name, kind in fields.items() for column in _named(columns, name, kind)
    }


def _named(columns: pa.Schema, name: str, kind: str) -> Iterator[str]:
    """The columns for a field of this name and type: there is one."""
    of_field = [
        column.name
        for column in columns
        if re.fullmatch(rf"{name}(_\d+)?", column.name) and column.type == _TYPES[kind]
    ]
    require(len(of_field) == 1, f"the field {name} of type {kind} has the columns {of_field} of {columns.names}")
    yield from of_field


def _json_cells(value: SimValue, payload: int, columns: pa.Schema) -> dict[str, Any]:
    """The cells of a JSON value: each key in the first of its columns that has its type or holds JSON text."""
    if value.data is None:
        return {"_tombstone": True}
    cells = {}
    for name, kind in (value.schema.fields if value.schema else {}).items():
        of_key = [column for column in columns if field_name(column) == name]
        column = next(column for column in of_key if _is_json_text(column) or column.type == _TYPES[kind])
        cell = KINDS[kind].value(payload)
        cells[column.name] = json.dumps(cell) if _is_json_text(column) else cell
    return cells


def _debezium_cells(value: SimValue, payload: int, columns: pa.Schema) -> dict[str, Any]:
    """The cells of a Debezium event: the row after the change, and what changed it."""
    cells = _json_cells(value, payload, columns)
    return cells if value.data is None else {**cells, OP: "c", TS_MS: payload}


def _text_cells(value: SimValue, payload: int, _columns: pa.Schema) -> dict[str, Any]:
    return {"_tombstone": True} if value.data is None else {"value": str(payload)}


def _is_json_text(column: pa.Field) -> bool:
    """Whether a column holds any value as its JSON text."""
    return reading_of(column) is JsonReading.TEXT


_CELLS: Mapping[Encoding, Callable[[SimValue, int, pa.Schema], dict[str, Any]]] = {
    "avro": _cells,
    "protobuf": _cells,
    "json": _json_cells,
    "debezium": _debezium_cells,
    "text": _text_cells,
}
"""The cells that a value must have, by the encoding."""
