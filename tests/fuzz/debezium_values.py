"""Change events in JSON and in Avro, whole and mutated: the row after the change, or the refusal of the oracles."""

import json
import random
from functools import cache
from typing import Any

import pyarrow as pa

from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.values.avro.decoder import AvroDecoder
from kafka_io.values.avro.schema import parse_avro
from kafka_io.values.debezium.decoder import DebeziumDecoder
from kafka_io.values.decoding import ValueDecoder
from kafka_io.values.json.decoder import JsonDecoder
from tests.fuzz.sized import joined, parted
from tests.kafka_io.values.avro.making import ValueMaker, framed, mutated
from tests.oracles import avro as avro_oracle
from tests.oracles import json_values

_MOST_VALUES = 12
_ROW = {"id": pa.int64(), "note": pa.string()}
_SOURCE = pa.struct({"lsn": pa.int64()})
_COLUMNS = pa.schema({**_ROW, "__op": pa.string(), "__ts_ms": pa.int64(), "__source": _SOURCE})
_EVENT = {
    "before": pa.struct(_ROW),
    "after": pa.struct(_ROW),
    "op": pa.string(),
    "ts_ms": pa.int64(),
    "source": _SOURCE,
}
_ENVELOPE = pa.schema({**_EVENT, "payload": pa.struct(_EVENT)})
_VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"]}],
}
_AVRO: Any = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", _VALUE]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": {"type": "enum", "name": "Op", "symbols": ["c", "u", "d", "r", "t"]}},
        {"name": "ts_ms", "type": ["null", "long"]},
        {
            "name": "source",
            "type": {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]},
        },
    ],
}
_JSON_INPUT, _AVRO_INPUT = b"j", b"a"


@cache
def _decoder(kind: bytes) -> DebeziumDecoder:
    """One decoder for all inputs of a kind, so that each of them finds the memory of the one before."""
    schemas = {1: parse_avro(json.dumps(_AVRO))}

    def envelopes(columns: pa.Schema) -> ValueDecoder:
        return AvroDecoder(columns, schemas) if kind == _AVRO_INPUT else JsonDecoder(columns)

    return DebeziumDecoder(_COLUMNS, envelopes)


def mutated_events(rng: random.Random) -> bytes:
    """The kind of the events, and a few events; most have bytes changed."""
    kind = rng.choice((_JSON_INPUT, _AVRO_INPUT))
    make_event = _json_event if kind == _JSON_INPUT else _avro_event
    return kind + joined(_damaged(make_event(rng), rng) for _ in range(rng.randrange(1, _MOST_VALUES)))


def _damaged(value: bytes, rng: random.Random) -> bytes:
    return mutated(rng, value) if rng.randrange(2) else value


def _avro_event(rng: random.Random) -> bytes:
    return ValueMaker(rng, dict(avro_oracle.parse(_AVRO).named)).value(_AVRO)


def _json_event(rng: random.Random) -> bytes:
    def row() -> dict[str, Any] | None:
        full = {"id": rng.randrange(-3, 3), "note": rng.choice(("a", None, "\u20ac"))}
        return rng.choice((None, full, full, {"id": 5}, {"id": "x"}, {**full, "more": []}))

    event = {
        "before": row(),
        "after": row(),
        "op": rng.choice(("c", "u", "d", "r", "t", None, 7)),
        "ts_ms": rng.choice((None, 1_700_000_000_000)),
        "source": rng.choice((None, {"lsn": 1, "table": "orders"})),
    }
    members = {name: event[name] for name in event if rng.randrange(8)}
    wrapped = {"schema": rng.choice((None, {})), "payload": members}
    return json.dumps(rng.choice((members, members, wrapped, {**members, **wrapped})), ensure_ascii=False).encode()


def read_events(data: bytes, _limits: DecodeLimits) -> None:
    """Only decode."""
    _decoder(data[:1]).decode(_array(data))


def _array(data: bytes) -> pa.BinaryArray:
    values = parted(data[1:])
    return pa.array([framed(1, value) if data[:1] == _AVRO_INPUT else value for value in values], pa.binary())


def check_events(data: bytes, _rng: random.Random) -> str:
    """Check that each event gives the row of the oracles, or is refused; returns "read" or "refused"."""
    decoded = _decoder(data[:1]).decode(_array(data))
    decoded.rows.validate(full=True)
    refused = {failure.row for failure in decoded.failures}
    assert [failure.row for failure in decoded.failures] == sorted(refused)
    events = parted(data[1:])
    assert decoded.rows.num_rows == len(events)
    for row, (event, cells) in enumerate(zip(events, decoded.rows.to_pylist(), strict=True)):
        expected = _expected(data[:1], event)
        assert (row in refused) == (expected is None), (event, expected)
        assert cells == (expected or dict.fromkeys(_COLUMNS.names)), event
    return "refused" if refused else "read"


def _expected(kind: bytes, value: bytes) -> dict[str, Any] | None:
    """The row of an event; None if it is refused, or is not an event."""
    try:
        envelope = avro_oracle.parse(_AVRO).row(value) if kind == _AVRO_INPUT else json_values.row(value, _ENVELOPE)
    except (avro_oracle.Refused, json_values.Refused):
        return None
    assert envelope is not None
    events = [event for event in (envelope, envelope.get("payload")) if event and event["op"] is not None]
    if not events:
        return None
    event = events[0]
    row = event["before" if event["op"] == "d" else "after"] or {}
    about = {f"__{name}": event[name] for name in ("op", "ts_ms", "source")}
    return {**{name: row.get(name) for name in _ROW}, **about}
