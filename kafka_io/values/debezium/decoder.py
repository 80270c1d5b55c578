"""Change events of Debezium to the rows after the changes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.debezium.columns import ENVELOPE_FIELDS, envelope_of
from kafka_io.values.decoding import DecodedValues, FailedValue, ValueDecoder, in_order
from kafka_io.values.framing import read_frames
from kafka_io.values.json.decoder import JsonDecoder

Members = Mapping[str, pa.Array]
_WRAPPED = r'(?s)^\s*\{\s*"schema"\s*:.*"payload"\s*:'
"""How a key with its schema begins: Kafka Connect's converter writes these two members in this order."""
_NO_OP = "the value is not a change event of Debezium: it has no op"


class DebeziumDecoder:
    """Decodes change events into the row after the change, or for a delete into the row before it.

    The event of a delete has the whole row or only its key, depending on the settings of the database. The tombstone
    after a delete is a row of nulls. Events without a row, such as a truncation, have nothing but `__op`, `__ts_ms` and
    `__source`.

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
        self._envelopes = decoder(envelope_of(columns))

    @property
    def columns(self) -> pa.Schema:
        """The columns that the decoder fills."""
        return self._columns

    def decode(self, values: pa.BinaryArray) -> DecodedValues:
        """The rows of these values. See DecodedValues."""
        decoded = self._envelopes.decode(values)
        places = [_members(decoded.rows.to_struct_array())]
        places.append(_members(places[0]["payload"]))
        events = [place["op"].is_valid().to_numpy(zero_copy_only=False) for place in places]
        chosen = np.where(events[0], 0, np.where(events[1], 1, -1))
        rows, row_of_value = _rows_of(places, chosen)
        arrays = [
            _chosen([place[ENVELOPE_FIELDS[field.name]] for place in places], chosen)
            if field.name in ENVELOPE_FIELDS
            else _chosen([row[field.name] for row in rows], row_of_value)
            for field in self._columns
        ]
        failed = {failure.row for failure in decoded.failures}
        others = [row for row in np.flatnonzero(chosen < 0).tolist() if row not in failed]
        unknown = np.isin(read_frames(values).ids, list(decoded.unknown_schemas)) if decoded.unknown_schemas else None
        missing = [row for row in others if values[row].is_valid and (unknown is None or not unknown[row])]
        without_op = (FailedValue(row=row, reason=_NO_OP) for row in missing)
        return DecodedValues(
            rows=pa.RecordBatch.from_arrays(arrays, schema=self._columns),
            failures=in_order(decoded.failures, without_op),
            unknown_schemas=decoded.unknown_schemas,
            new_keys=decoded.new_keys,
        )


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
        key = pa.field("payload", pa.struct(list(columns)))
        self._plain, self._wrapped = JsonDecoder(columns), JsonDecoder(pa.schema([key]), unwatched=("",))

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
        inside = _members(_members(wrapped.rows.to_struct_array())["payload"])
        chosen = is_wrapped.to_numpy(zero_copy_only=False).astype(np.int64)
        arrays = [
            _chosen([plain.rows.column(place), inside[field.name]], chosen) for place, field in enumerate(self._columns)
        ]
        return DecodedValues(
            rows=pa.RecordBatch.from_arrays(arrays, schema=self._columns),
            failures=in_order(plain.failures, wrapped.failures),
            new_keys=np.union1d(plain.new_keys, wrapped.new_keys),
        )


def _rows_of(
    places: Sequence[Members], chosen: npt.NDArray[np.int64]
) -> tuple[Sequence[Members], npt.NDArray[np.int64]]:
    """The rows after and before the change in each place of the envelope, and for each value its index among them."""
    row_of_value = 2 * chosen
    for number, place in enumerate(places):
        is_delete = pc.equal(place["op"], "d").fill_null(False).to_numpy(zero_copy_only=False)
        row_of_value[(chosen == number) & is_delete] += 1
    return [_members(place[name]) for place in places for name in ("after", "before")], row_of_value


def _members(struct: pa.StructArray) -> Members:
    """The members of a struct; null where the struct is null."""
    return dict(zip((field.name for field in struct.type), struct.flatten(), strict=True))


def _chosen(sources: Sequence[pa.Array], source: npt.NDArray[np.int64]) -> pa.Array:
    """For each row the item of the source that has the row's number; null for a negative number."""
    if not source.any():
        return sources[0]
    rows = np.arange(len(source)) + source * len(source)
    return pa.concat_arrays(sources).take(pa.array(rows, mask=source < 0))
