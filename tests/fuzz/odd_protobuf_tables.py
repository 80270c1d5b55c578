"""Protobuf messages with odd names, types and times, of files that change, loaded into tables that readers read."""

import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafka_io.errors import InvalidSchema
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from kafka_io.values.protobuf.descriptors import parse_protobuf
from tests.fuzz.leaves import lost
from tests.fuzz.sized import joined, parted
from tests.fuzz.tables import check_table
from tests.kafka_io.values.avro.making import framed, varint
from tests.kafka_io.values.protobuf.making import MessageMaker, ProtoMaker
from tests.oracles import protobuf as oracle

_NAMES = (
    "a", "A", "b", "B", "a_b", "A_B", "aB", "a_2", "A_2", "key", "value", "list", "element", "entries", "seconds",
    "nanos", "member0", "date", "offset", "message", "string", "optional", "_error", "_raw", "_kafka_offset",
    "_KAFKA_key", "__op", "_", "reserved", "to",
)  # fmt: skip
_FILE, _REGISTRY = b"f", b"r"


def odd_protobuf_loads(rng: random.Random) -> bytes:
    """Where the types are, a line of JSON with the texts of the files and the wanted message type, and a few loads.

    A value is the number of its file, that of its message type in it, and a body.
    """
    place = rng.choice((_FILE, _REGISTRY))
    texts = [_text(rng) for _ in range(1 if place == _FILE else rng.randrange(1, 3))]
    wanted = rng.randrange(min(text.count("message M") for text in texts))
    maker = MessageMaker(rng, is_odd=True)

    def value(newest: int) -> bytes:
        number = rng.randrange(newest + 1)
        index = wanted if place == _FILE or rng.randrange(8) else rng.randrange(texts[number].count("message M"))
        return bytes([number, index]) + maker.body(parse_protobuf(texts[number]).message_at((index,)))

    loads = [
        joined(value(min(number, len(texts) - 1)) for _ in range(rng.randrange(1, 4)))
        for number in range(rng.randrange(len(texts), len(texts) + 2))
    ]
    return place + json.dumps({"texts": texts, "wanted": wanted}).encode() + b"\n" + joined(loads)


def _text(rng: random.Random) -> str:
    """The text of a file; some names are not possible beside others."""
    while True:
        text = ProtoMaker(rng, _NAMES).text()
        try:
            parse_protobuf(text)
        except InvalidSchema:
            continue
        return text


def check_odd_protobuf(data: bytes, _rng: random.Random, session: SparkSession | None = None) -> str:
    """Check that each row has what its value has, and that all readers find it by it.

    Returns "read" if all values were decoded, else "refused".
    """
    line, _, remaining = data[1:].partition(b"\n")
    made = json.loads(line)
    texts, wanted = made["texts"], made["wanted"]
    loads = [parted(load) for load in parted(remaining)]
    with _settings(data[:1], texts) as (ids, format_, registries):
        framed_loads = [[_framed(ids, value) for value in load] for load in loads]
        settings = {"format": "protobuf", "message": f"made.M{wanted}", **format_}
        rows = check_table(framed_loads, settings, registries=registries, session=session)
    schemas = [parse_protobuf(text) for text in texts]
    for value, row in zip((value for load in loads for value in load), rows, strict=True):
        if value[1] != wanted:
            assert row["_error"] is not None
        else:
            _check_row(schemas[value[0]].message_at((wanted,)), value[2:], row)
    return "refused" if any(row["_error"] is not None for row in rows) else "read"


@contextmanager
def _settings(place: bytes, texts: list[str]) -> Iterator[tuple[list[int], Mapping[str, Any], Mapping[str, Any]]]:
    """The ids of the texts, the settings of the topic, and the registries."""
    if place == _FILE:
        with tempfile.NamedTemporaryFile(suffix=".proto") as file:
            Path(file.name).write_text(texts[0])
            yield [], {"proto_file": file.name}, {}
        return
    with EmbeddedSchemaRegistry() as registry:
        ids = [registry.register(f"s{n}-value", text, schema_type="PROTOBUF") for n, text in enumerate(texts)]
        yield ids, {}, {"main": {"url": registry.url}}


def _framed(ids: list[int], value: bytes) -> bytes:
    """A value with the frame of Confluent's serializers, if there is a registry."""
    number, index, body = value[0], value[1], value[2:]
    return framed(ids[number], (varint(1) + varint(index) if index else b"\0") + body) if ids else body


def _check_row(message: Any, body: bytes, row: Mapping[str, Any]) -> None:
    expected: Any = None
    try:
        expected = oracle.row(message, body)
    except oracle.Refused:
        assert row["_error"] is not None, f"{body.hex()} is not refused"
    if row["_error"] is not None:
        # A good value may be refused because its column has another type, and one with fields of wrong wire types.
        is_of_column = "not valid UTF-8" in row["_error"] or "would round the number" in row["_error"]
        is_right = expected is None or not oracle.is_strict(message, body) or is_of_column
        assert is_right, f"{body.hex()} is refused ({row['_error']}), and not {expected}"
        assert row["_raw"].endswith(body)
        return
    own = {name: cell for name, cell in row.items() if not name.startswith("_kafka_")}
    missing = lost(_plain(expected), own)
    assert not missing, f"{body.hex()} lost {missing}: {own}"


def _plain(value: Any) -> Any:
    """A value of the oracle as `lost` takes it."""
    if isinstance(value, oracle.Json):
        return value.value
    if isinstance(value, oracle.Entries):
        return [(key, _plain(item)) for key, item in value.items()]
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
