"""Change events of Debezium to the rows after the changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.columns import field_name
from kafka_io.values.debezium.columns import (
    AFTER,
    BEFORE,
    OP,
    PAYLOAD,
    envelope_of,
    is_about,
    lacking,
    row_of,
    text_envelope_of,
)
from kafka_io.values.decoding import DecodedValues, FailedValue, ValueDecoder, in_order
from kafka_io.values.json.decoder import JsonDecoder
from kafka_io.values.json.reading import JsonNumbers

Members = Mapping[str, pa.Array]
_WRAPPED = r'(?s)^\s*\{\s*"schema"\s*:.*"payload"\s*:'
"""How a key with its schema begins: Kafka Connect's converter writes these two members in this order."""
_NO_OP = "the value is not a change event of Debezium: it has no op"
_EMPTY = pa.array(["{}", "[]"])
"""Values of fields that say nothing about the type of a column."""


class DebeziumDecoder:
    """Decodes change events into the row after the change, or for a delete into the row before it.

    The event of a delete has the whole row or only its key, depending on the settings of the database. The tombstone
    after a delete is a row of nulls. Events without a row, such as a truncation, only fill the columns about the event.
    A row can be a text with a JSON object, as the connector of MongoDB writes it.

    >>> import pyarrow as pa
    >>> from kafka_io import DebeziumDecoder, JsonDecoder
    >>> decoder = DebeziumDecoder(pa.schema({"id": pa.int64(), "__op": pa.string()}), JsonDecoder)
    >>> values = [b'{"op": "c", "after": {"id": 1}}', b'{"op": "d", "before": {"id": 1}, "after": null}', None]
    >>> decoder.decode(pa.array(values, pa.binary())).rows.to_pylist()
    [{'id': 1, '__op': 'c'}, {'id': 1, '__op': 'd'}, {'id': None, '__op': None}]

    Args:
        columns: the columns of the table, see `columns_of_debezium`.
        decoder: makes the decoder of the envelope for its columns: JsonDecoder, or one of Avro with its schemas.
    """

    def __init__(self, columns: pa.Schema, decoder: Callable[[pa.Schema], ValueDecoder]) -> None:
        self._columns = columns
        self._decoder = decoder
        self._envelopes = decoder(envelope_of(columns))
        self._lacking = lacking(columns)

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values. See DecodedValues."""
        decoded = self._envelopes.decode(values)
        events = _Events(decoded.rows, self._lacking)
        complete = self._complete(values, decoded, events, _members(events.row()), decoded.failures)
        return self._with_texts(values, complete, [failure.row for failure in decoded.failures])

    @cached_property
    def _texts(self) -> tuple[ValueDecoder, JsonDecoder]:
        """The decoders of envelopes in which rows are texts, and of these texts."""
        return self._decoder(text_envelope_of(self._columns)), JsonDecoder(
            row_of(self._columns), numbers=JsonNumbers.INFERRED
        )

    def _with_texts(self, values: pa.BinaryArray, others: DecodedValues, places: Sequence[int]) -> DecodedValues:
        """The rows, in which the values at some places are read again if their rows are texts."""
        if not places:
            return others
        envelopes, rows = self._texts
        again = values.take(pa.array(places))
        decoded = envelopes.decode(again)
        events = _Events(decoded.rows, self._lacking)
        is_text = events.has_row()
        if not is_text.any():
            return others
        inner = rows.decode(events.row().cast(pa.binary()))
        members = dict(zip(inner.rows.schema.names, inner.rows.columns, strict=True))
        reasons = [FailedValue(row=each.row, reason=f"the text of the row: {each.reason}") for each in inner.failures]
        read = self._complete(again, decoded, events, members, reasons)
        at = np.array(places)
        failures = [replace(each, row=places[each.row]) for each in read.failures if is_text[each.row]]
        source = np.arange(len(values))
        source[at[is_text]] = len(values) + np.flatnonzero(is_text)
        is_bad = np.isin(np.arange(len(values)), [failure.row for failure in failures])
        columns = zip(others.rows.columns, read.rows.columns, strict=True)
        arrays = [pa.concat_arrays(pair).take(pa.array(source, mask=is_bad)) for pair in columns]
        replaced = set(at[is_text].tolist())
        return replace(
            others,
            rows=pa.RecordBatch.from_arrays(arrays, schema=self._columns),
            failures=in_order((each for each in others.failures if each.row not in replaced), failures),
            new_keys=np.union1d(others.new_keys, at[_both(read.new_keys, inner.new_keys, is_text)]),
            rounded=np.union1d(others.rounded, at[_both(read.rounded, inner.rounded, is_text)]),
        )

    def _complete(
        self,
        values: pa.BinaryArray,
        decoded: DecodedValues,
        events: "_Events",
        row: Members,
        failures: Sequence[FailedValue],
    ) -> DecodedValues:
        """The rows of events, with the reasons why other values are none."""
        failed = {failure.row for failure in failures}
        arrays = [events.about(column) if is_about(column) else row[column.name] for column in self._columns]
        others = [row for row in events.missing().tolist() if row not in failed]
        unknown = set(np.flatnonzero(np.isin(decoded.schema_ids, list(decoded.unknown_schemas))).tolist())
        missing = [row for row in others if values[row].is_valid and row not in unknown]
        return DecodedValues(
            rows=pa.RecordBatch.from_arrays(arrays, schema=self._columns),
            failures=in_order(failures, (FailedValue(row=row, reason=_NO_OP) for row in missing)),
            unknown_schemas=decoded.unknown_schemas,
            schema_ids=decoded.schema_ids,
            new_keys=np.union1d(decoded.new_keys, events.lacking()),
            rounded=decoded.rounded,
        )


class _Events:
    """The envelopes in rows of `envelope_of`: each is the value itself, or inside `payload`."""

    def __init__(self, rows: pa.RecordBatch, lacking: Sequence[str]) -> None:
        self._places = [_members(rows.to_struct_array())]
        self._places.append(_members(self._places[0][PAYLOAD]))
        self._lacking = lacking
        is_event = [place["op"].is_valid().to_numpy(zero_copy_only=False) for place in self._places]
        self._chosen = np.where(is_event[0], 0, np.where(is_event[1], 1, -1))

    def missing(self) -> npt.NDArray[np.int64]:
        """The rows that are no events."""
        return np.flatnonzero(self._chosen < 0)

    def about(self, column: pa.Field) -> pa.Array:
        """A column about the events."""
        name = "op" if field_name(column) == OP else column.name
        return _chosen([place[name] for place in self._places], self._chosen)

    def row(self) -> pa.Array:
        """The row of each event: the one after the change, or before a delete."""
        source = 2 * self._chosen
        for number, place in enumerate(self._places):
            is_delete = pc.equal(place["op"], "d").fill_null(False).to_numpy(zero_copy_only=False)
            source[(self._chosen == number) & is_delete] += 1
        return _chosen([place[name] for place in self._places for name in (AFTER, BEFORE)], source)

    def has_row(self) -> npt.NDArray[np.bool_]:
        """For each event, whether it has a row: the one after the change, or the one before it."""
        rows = [_chosen([place[name] for place in self._places], self._chosen) for name in (AFTER, BEFORE)]
        result: npt.NDArray[np.bool_] = pc.or_(*map(pc.is_valid, rows)).to_numpy(zero_copy_only=False)
        return result

    def lacking(self) -> npt.NDArray[np.int64]:
        """The events with a field for which there is no column, and in which it is not empty."""
        has_more = np.zeros(len(self._chosen), np.bool_)
        for name in self._lacking:
            texts = _chosen([place[name] for place in self._places], self._chosen)
            is_full = pc.invert(pc.is_in(texts, _EMPTY, skip_nulls=True))
            has_more |= pc.and_(texts.is_valid(), is_full).to_numpy(zero_copy_only=False)
        return np.flatnonzero(has_more)


class DebeziumKeyDecoder:
    """Decodes the keys of Debezium's events in JSON: an object, or a schema and the object as `payload`.

    >>> import pyarrow as pa
    >>> keys = [b'{"id": 1}', b'{"schema": null, "payload": {"id": 2}}', None]
    >>> DebeziumKeyDecoder(pa.schema({"id": pa.int64()})).decode(pa.array(keys, pa.binary())).rows.to_pylist()
    [{'id': 1}, {'id': 2}, {'id': None}]

    Args:
        columns: the columns, see `fields_of_keys`.
    """

    def __init__(self, columns: pa.Schema) -> None:
        self._columns = columns
        key = pa.field(PAYLOAD, pa.struct(list(columns)))
        self._plain = JsonDecoder(columns, numbers=JsonNumbers.INFERRED)
        self._wrapped = JsonDecoder(pa.schema([key]), unwatched=("",), numbers=JsonNumbers.INFERRED)

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these keys. See DecodedValues."""
        is_wrapped = pc.fill_null(pc.match_substring_regex(values, _WRAPPED), fill_value=False)
        nothing = pa.scalar(None, values.type)
        wrapped = self._wrapped.decode(pc.if_else(is_wrapped, values, nothing))
        plain = self._plain.decode(pc.if_else(is_wrapped, nothing, values))
        inside = _members(_members(wrapped.rows.to_struct_array())[PAYLOAD])
        chosen = is_wrapped.to_numpy(zero_copy_only=False).astype(np.int64)
        arrays = [
            _chosen([plain.rows.column(place), inside[field.name]], chosen) for place, field in enumerate(self._columns)
        ]
        return DecodedValues(
            rows=pa.RecordBatch.from_arrays(arrays, schema=self._columns),
            failures=in_order(plain.failures, wrapped.failures),
            new_keys=np.union1d(plain.new_keys, wrapped.new_keys),
            rounded=np.union1d(plain.rounded, wrapped.rounded),
        )


def _members(struct: pa.StructArray) -> Members:
    """The members of a struct; null where the struct is null."""
    return dict(zip((field.name for field in struct.type), struct.flatten(), strict=True))


def _both(
    envelopes: npt.NDArray[np.int64], texts: npt.NDArray[np.int64], is_text: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The rows that are among those of envelopes, or of the texts in them, and have a text."""
    return np.intersect1d(np.union1d(envelopes, texts), np.flatnonzero(is_text))


def _chosen(sources: Sequence[pa.Array], source: npt.NDArray[np.int64]) -> pa.Array:
    """For each row the item of the source that has the row's number; null for a negative number."""
    if not source.any():
        return sources[0]
    rows = np.arange(len(source)) + source * len(source)
    return pa.concat_arrays(sources).take(pa.array(rows, mask=source < 0))
