"""The rows of a typed table: a worker decodes the values of each batch into the columns of its file.

A value that does not decode is a row too: it has the reason in `_error` and the bytes in `_raw`. Nothing here is done
per record in Python, except for the records that do not decode.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from kafka_io.values.decoding import DecodedValues, FailedValue, ValueDecoder, in_order
from kafka_io.values.header_texts import header_texts
from kafka_io.values.json.inference import grow_by_fields, has_key_twice, merged_fields, split_sample
from pipelines.fetch.decode_plan import DecodePlan, PartPlan
from pipelines.fetch.formats import encoding_of
from pipelines.layout.columns import (
    ERROR_COLUMN,
    KEY_PREFIX,
    KEY_SCHEMA_HEADER,
    RAW_COLUMN,
    SCHEMA_ID_COLUMN,
    TOMBSTONE_COLUMN,
    VALUE_SCHEMA_HEADER,
    header_columns,
)
from pipelines.layout.personal import without_keys
from pipelines.layout.rows import FILE_SCHEMA, table_rows
from pipelines.ledger.schema_ids import message_of
from pipelines.ledger.slice_facts import BadRecord, DecodingNeeds, PartNeeds
from pipelines.rules.column_rules import sampled
from pipelines.rules.ruled_columns import RuledColumns
from pipelines.rules.skip_condition import RecordMask
from pipelines.schemas.schema_headers import (
    SHORT_ID_BYTES,
    SchemaHeaders,
    with_azure_frames,
    with_short_ids,
)

if TYPE_CHECKING:  # numba is slow to import, and few topics have hashes
    from kafka_io.hashes.keyed_hashes import KeyedHash

KEY_REASON = "key: "
"""The prefix of the reason if the key does not decode."""
_MAX_EXAMPLES = 3
_TEXT = pa.string()
# A frame of Azure's serializers looks like one with the id of a hexadecimal digit.
_AZURE = re.compile(rb"\0{4}[0-9a-f]{32}")
_AZURE_REASON = "the value has the frame of Azure's schema registry: for Avro, set `avro_file` and `avro_frame`"


class IncompletePlan(Exception):
    """The plan lacks schemas or fields that records of a batch have."""

    def __init__(self, needs: DecodingNeeds) -> None:
        self.needs = needs


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedPart:
    """The decoded values, or keys, of a batch.

    Args:
        columns: the columns for fields, by name.
        schema_ids: see DecodedValues.
        decoded: the same before the rules for columns.
        failures: what does not decode.
        needs: schemas that the driver must resolve first, and fields that must get columns first.
        rounded: the rows in which a number has lost digits.
    """

    columns: Mapping[str, pa.Array]
    schema_ids: npt.NDArray[np.int32]
    decoded: Mapping[str, pa.Array]
    failures: Sequence[FailedValue]
    needs: PartNeeds
    rounded: npt.NDArray[np.int64]


def _part_needs(schemas: Iterable[int | str], fields: Sequence[pa.Field]) -> PartNeeds:
    message = pa.schema(fields).serialize().to_pybytes() if fields else b""
    return PartNeeds(schemas=tuple(sorted(schemas, key=str)), fields=message)


def merged_needs(needs: Iterable[DecodingNeeds]) -> DecodingNeeds:
    """What all of these need together."""
    needs = list(needs)
    return DecodingNeeds(
        values=_merged([each.values for each in needs]),
        keys=_merged([each.keys for each in needs]),
        routes=tuple(use for each in needs for use in each.routes),
    )


def _merged(needs: Sequence[PartNeeds]) -> PartNeeds:
    return _part_needs({id_ for part in needs for id_ in part.schemas}, merged_fields(map(fields_of, needs)))


def fields_of(needs: PartNeeds) -> Sequence[pa.Field]:
    """The fields that need columns."""
    return list(pa.ipc.read_schema(pa.py_buffer(needs.fields))) if needs.fields else ()


class TypedRows:
    """Decodes batches as a plan says.

    Attributes:
        bad: how many records do not decode; `examples` are the first ones.
        rounded: in how many records a number has lost digits; `first_rounded` is the offset of the first one.
    """

    def __init__(self, plan: DecodePlan) -> None:
        self.bad = self.rounded = 0
        self.first_rounded: int | None = None
        self.examples: list[BadRecord] = []
        self._layout = plan.layout
        self._rules, self._skips = plan.row_rules, plan.skips
        hashes = self._rules.hashes()
        self._values = _PartRows(plan, VALUE_SCHEMA_HEADER, hashes)
        self._keys = _PartRows(plan.keys, KEY_SCHEMA_HEADER, hashes) if plan.keys else None
        self._has_schema_ids = plan.has_schema_ids
        self._header_names, self._header_columns = plan.headers, header_columns(plan.headers)
        self._own_names = {self._layout.name(field.name): field.name for field in FILE_SCHEMA}

    def rows(self, records: pa.RecordBatch, constants: Mapping[str, object]) -> pa.RecordBatch:
        """The rows of `records`, as kafka_io.records decodes them; `constants` are the values of other columns.

        Raises:
            IncompletePlan: the driver must resolve ids or add columns first.
        """
        return self.of_raw_rows(table_rows(records, dict(constants)))

    def rows_to_skip(
        self, records: pa.RecordBatch, constants: Mapping[str, object]
    ) -> tuple[pa.RecordBatch, RecordMask | None]:
        """The same rows, and for which of them the condition `skip` is true; None for no condition.

        It is not true for a record that does not decode.

        Raises:
            IncompletePlan: the driver must resolve ids or add columns first.
        """
        kafka = table_rows(records, dict(constants))
        rows, decoded = self._of(kafka)
        if self._skips is None:
            return rows, None
        decodes: RecordMask = rows.column(ERROR_COLUMN).is_null().to_numpy(zero_copy_only=False)
        return rows, self._skips.is_true(kafka, decoded) & decodes

    def of_raw_rows(self, kafka: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a raw table, which have the columns of FILE_SCHEMA, as rows of the typed table.

        Raises:
            IncompletePlan: the driver must resolve ids or add columns first.
        """
        return self._of(kafka)[0]

    def _of(self, kafka: pa.RecordBatch) -> tuple[pa.RecordBatch, Mapping[str, pa.Array]]:
        """The rows, and the columns that were decoded, before the rules for columns."""
        raw, headers = kafka.column("value"), kafka.column("headers")
        # Keys are decoded even if values lack something, so that the next attempt knows what both lack.
        values = self._values.decode(raw, headers)
        keys = self._keys.decode(kafka.column("key"), headers) if self._keys else None
        needs = DecodingNeeds(values=values.needs, keys=keys.needs if keys else PartNeeds())
        if needs != DecodingNeeds():
            raise IncompletePlan(needs)
        failures, columns, decoded = values.failures, dict(values.columns), dict(values.decoded)
        if keys:
            of_keys = {failure.row: f"{KEY_REASON}{failure.reason}" for failure in keys.failures}
            # A row has one `_error`. If neither decodes, the reason of the value is the one to repair first, unless the
            # table does not keep the key: then nothing repairs it.
            of_values = {failure.row: failure.reason for failure in failures}
            reasons = of_values | of_keys if self._rules.hides_keys else of_keys | of_values
            failures = [FailedValue(row=row, reason=reasons[row]) for row in sorted(reasons)]
            columns |= {KEY_PREFIX + name: column for name, column in keys.columns.items()}
            decoded |= {KEY_PREFIX + name: column for name, column in keys.decoded.items()}
        if self._has_schema_ids:
            ids = pa.array(values.schema_ids, pa.int64(), mask=values.schema_ids < 0)
            columns[SCHEMA_ID_COLUMN] = decoded[SCHEMA_ID_COLUMN] = ids
        if self._header_names:
            texts = zip(self._header_columns.names, header_texts(headers, self._header_names), strict=True)
            columns |= (of_headers := dict(texts))
            decoded |= of_headers
        self._count(kafka, failures)
        self._count_rounded(kafka, np.union1d(values.rounded, keys.rounded) if keys else values.rounded)
        columns[ERROR_COLUMN], columns[RAW_COLUMN] = _failed_columns(raw, failures)
        # The fields of a tombstone are null, and so are those of a bad record. Without this column an update of a state
        # table could not tell a deleted key from a broken value.
        columns[TOMBSTONE_COLUMN] = raw.is_null()
        columns |= {name: kafka.column(own) for name, own in self._own_names.items() if name not in columns}
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(raw), field.type)
            for field in self._layout.file_schema
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._layout.file_schema)
        return self._rules.applied(rows, self._layout), decoded

    def _count(self, rows: pa.RecordBatch, failures: Sequence[FailedValue]) -> None:
        self.bad += len(failures)
        offsets = rows.column("offset")
        for failure in failures[: _MAX_EXAMPLES - len(self.examples)]:
            self.examples.append(BadRecord(offset=offsets[failure.row].as_py(), reason=failure.reason))

    def _count_rounded(self, rows: pa.RecordBatch, rounded: npt.NDArray[np.int64]) -> None:
        if len(rounded) and self.first_rounded is None:
            self.first_rounded = rows.column("offset")[int(rounded[0])].as_py()
        self.rounded += len(rounded)


class _PartRows:
    """Decodes the values, or the keys, as a plan says."""

    def __init__(self, plan: PartPlan, header: str, hashes: "Mapping[str, KeyedHash]") -> None:
        schemas = plan.schemas
        self._rules = plan.rules
        self._ruled = RuledColumns(plan.values, plan.stored_values, plan.rules, hashes) if plan.rules else None
        self._refused = schemas.refused
        self._encoding, self._columns = encoding_of(plan.encoding), plan.values
        self._personal = plan.personal
        self._decoder = decoder_of(plan)
        self._headers = (
            SchemaHeaders(header, schemas.by_guid, schemas.refused_guids) if self._encoding.is_framed else None
        )
        self._has_long_ids = plan.id_bytes > SHORT_ID_BYTES
        self._has_azure_ids = plan.encoding.startswith("local avro azure:")

    def decode(self, values: pa.BinaryArray, headers: pa.ListArray) -> DecodedPart:
        """The columns of these values or keys, whose records have these headers."""
        failures: Sequence[FailedValue] = ()
        unknown: frozenset[int | str] = frozenset()
        if self._headers is not None:
            framed = self._headers.framed(values, headers)
            values, failures, unknown = framed.values, framed.failures, framed.unknown
            if self._has_long_ids:
                values = with_short_ids(values)
        if self._has_azure_ids:
            values = with_azure_frames(values, headers)
        decoded = self._decoder.decode(values)
        fields = self._new_fields(values, decoded)
        if fields and (twice := _with_key_twice(values, decoded)):
            # With a column for its key the decoder would refuse such a value. So it is refused now, and no key of it
            # gets a column (fault Y04).
            values = pc.if_else(np.isin(np.arange(len(values)), list(twice)), pa.scalar(None, values.type), values)
            failures = in_order(failures, (FailedValue(row=row, reason=reason) for row, reason in twice.items()))
            decoded = self._decoder.decode(values)
            fields = self._new_fields(values, decoded)
        failures = in_order(failures, decoded.failures)
        if decoded.unknown_schemas:
            failures = in_order(failures, self._without_schema(values, decoded.schema_ids))
        unknown |= decoded.unknown_schemas - self._refused.keys()
        unknown |= {message_of(id_, name) for id_, name in decoded.unknown_messages}
        columns = dict(zip(decoded.rows.schema.names, decoded.rows.columns, strict=True))
        return DecodedPart(
            columns=self._ruled.of(columns) if self._ruled else columns,
            schema_ids=decoded.schema_ids,
            decoded=columns,
            failures=failures,
            needs=_part_needs(unknown, fields),
            rounded=np.setdiff1d(decoded.rounded, [failure.row for failure in failures]),
        )

    def _new_fields(self, values: pa.BinaryArray, decoded: DecodedValues) -> Sequence[pa.Field]:
        """The fields without columns, for encodings where only the values themselves show the fields.

        All values with new keys, and all that do not decode, are looked at until some of them have new fields.
        """
        of_sample = self._encoding.of_sample
        if of_sample is None:
            return ()
        rows = np.union1d(decoded.new_keys, np.array([failure.row for failure in decoded.failures], np.int64))
        for sample in split_sample(values, rows.tolist()):
            fields = sampled(without_keys(of_sample(sample), self._personal), self._rules)
            if not grow_by_fields(self._columns, fields).equals(self._columns):
                return fields
        return ()

    def _without_schema(self, values: pa.BinaryArray, ids: npt.NDArray[np.int32]) -> Iterator[FailedValue]:
        """The values whose schemas the registry does not have."""
        for row in np.flatnonzero(np.isin(ids, list(self._refused))).tolist():
            is_azure = _AZURE.match(values[row].as_py()) is not None
            yield FailedValue(row=row, reason=_AZURE_REASON if is_azure else self._refused[int(ids[row])])


def _with_key_twice(values: pa.BinaryArray, decoded: DecodedValues) -> Mapping[int, str]:
    """The rows of values with new keys that have a key twice, with the reasons why they do not decode."""
    reasons = {failure.row: failure.reason for failure in decoded.failures}
    rows = sorted(reasons.keys() | set(decoded.new_keys.tolist()))
    return {row: reasons.get(row, "a key occurs twice") for row in rows if has_key_twice(values[row].as_py())}


def decoder_of(plan: PartPlan) -> ValueDecoder:
    """The decoder for the plan's encoding. It fills the columns for the fields."""
    return encoding_of(plan.encoding).decoder(plan.values, plan.schemas.known)


def _failed_columns(values: pa.BinaryArray, failures: Sequence[FailedValue]) -> tuple[pa.Array, pa.Array]:
    """The reason and the bytes of each value that does not decode; null for the others."""
    if not failures:
        return pa.nulls(len(values), _TEXT), pa.nulls(len(values), pa.binary())
    rows = np.array([failure.row for failure in failures])
    # Arrow takes the few reasons to their rows. A Python list would need an object for each good record, too.
    indexes, is_good = np.zeros(len(values), np.int64), np.ones(len(values), np.bool_)
    indexes[rows], is_good[rows] = np.arange(len(rows)), False
    reasons = pa.array([failure.reason for failure in failures], _TEXT).take(pa.array(indexes, mask=is_good))
    return reasons, pc.if_else(pa.array(~is_good), values, pa.scalar(None, values.type))
