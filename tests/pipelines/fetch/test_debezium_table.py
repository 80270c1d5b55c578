"""Change events of Debezium become the rows after the changes, in JSON with or without a schema, and in Avro."""

import json
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of

SOURCE = {"lsn": 7, "table": "orders"}
COLUMNS = ("id", "note", "__op", "_tombstone")


def event(op: str, before: Any = None, after: Any = None, **others: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "source": SOURCE, "op": op, "ts_ms": 1_700_000_000_000, **others}


def connect(*fields: dict[str, Any]) -> dict[str, Any]:
    """The schema of an envelope with a row of these fields, as Kafka Connect's converter writes it."""
    row = {"type": "struct", "fields": list(fields)}
    members = [{**row, "field": "before"}, {**row, "field": "after"}, {"field": "op", "type": "string"}]
    return {"type": "struct", "fields": members}


def values(*documents: Any) -> list[bytes | None]:
    return [None if document is None else json.dumps(document).encode() for document in documents]


CHANGES = (
    event("c", None, {"id": 1, "note": "a"}, ts_us=1, transaction={"id": "x"}),
    event("u", {"id": 1, "note": "a"}, {"id": 1, "note": None}),
    event("d", {"id": 1, "note": "b"}),
    None,
)
ROWS = [(1, "a", "c", False), (1, None, "u", False), (1, "b", "d", False), (None, None, None, True)]


@pytest.fixture
def topic(fake: FakeCluster, tmp_path: Path) -> Iterator[TypedTopic]:
    fake.logs = {0: log_of(values(*CHANGES))}
    with fake:
        yield TypedTopic(fake=fake, folder=tmp_path / "lake", format_={"format": "debezium", "max_bad_share": 1})


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_row_is_the_one_after_the_change_and_a_delete_gives_the_one_before(
    topic: TypedTopic, is_wrapped: bool
) -> None:
    if is_wrapped:
        topic.fake.logs = {0: log_of(values(*(change and {"schema": None, "payload": change} for change in CHANGES)))}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.warnings) == (None, 4, 0, ())
    assert [tuple(row.values()) for row in topic.rows(*COLUMNS)] == ROWS
    assert topic.rows("__ts_ms", "__source")[2] == {"__ts_ms": 1_700_000_000_000, "__source": SOURCE}
    assert topic.deep().problems == ()


def test_a_column_that_the_database_adds_is_a_column_with_its_first_rows_and_other_values_are_kept(
    topic: TypedTopic,
) -> None:
    topic.load()
    wrapped = {"payload": event("d", {"id": 2, "gone": True})}
    append(topic.fake.logs[0], values(event("c", None, {"id": 2, "total": 1.5}), {"id": 3}, wrapped, [1]))
    load = topic.load()
    assert (load.error, load.rows, load.bad_records) == (None, 4, 2)
    rows = topic.rows("id", "total", "gone", "__op", "_raw")[4:]
    assert [tuple(row.values()) for row in rows] == [
        (2, 1.5, None, "c", None),
        (None, None, None, None, b'{"id": 3}'),
        (2, None, True, "d", None),
        (None, None, None, None, b"[1]"),
    ]
    append(topic.fake.logs[0], values(event("u", None, {"id": "x"})))
    assert topic.load().warnings == (
        "the field 'id' had the type int64 before: the new column id_2 holds it, with the type string",
    )
    assert topic.deep().problems == ()


def test_the_schema_in_the_values_gives_the_types_and_later_loads_read_them_alike(topic: TypedTopic) -> None:
    number = {"field": "id", "type": "int32", "doc": "the number"}
    day = {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}
    time = {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"}
    seen = {"field": "seen", "type": "string", "name": "io.debezium.time.ZonedTimestamp"}
    days = {"field": "days", "type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}}
    row = {"id": 1, "day": 15706, "at": 1_357_020_000_000_001, "seen": "2013-01-01T06:00:00Z", "days": [15706]}
    schema = connect(number, day, time, seen, days)
    topic.fake.logs = {0: log_of(values({"schema": schema, "payload": event("c", None, row)}))}
    topic.load()
    extended = connect(number, day, time, seen, days, {"field": "born", "type": "int32", "name": day["name"]})
    changes = ({**row, "id": 2}, {**row, "id": 3, "born": 15706})
    append(
        topic.fake.logs[0],
        values(*({"schema": extended, "payload": event("u", None, change)} for change in changes)),
    )
    load = topic.load()
    assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
    rows = topic.rows("id", "day", "at", "seen", "days", "born")
    assert [[str(value) for value in table_row.values()] for table_row in rows] == [
        [str(number), "2013-01-01", "2013-01-01 06:00:00.000001+00:00", "2013-01-01 06:00:00+00:00", "[15706]", born]
        for number, born in ((1, "None"), (2, "None"), (3, "2013-01-01"))
    ]
    assert topic.deep().problems == ()


def test_an_envelope_in_avro_gives_the_same_rows(topic: TypedTopic) -> None:
    row = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
    fields = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ]
    envelope = json.dumps({"type": "record", "name": "Envelope", "fields": fields})

    def encoded(schema_id: int, change: Any) -> bytes | None:
        if change is None:
            return None
        body = BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(envelope)), change)
        return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()

    with EmbeddedSchemaRegistry() as registry:
        id_ = registry.register("clicks-value", envelope)
        plain = registry.register("clicks-plain", json.dumps(row))
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {**topic.format_, "registry": "main"}
        topic.fake.logs = {
            0: log_of([*(encoded(id_, change) for change in CHANGES), b"\0" + plain.to_bytes(4, "big") + b"\2\0"])
        }
        load = topic.load()
        assert (load.error, load.rows, load.bad_records) == (None, 5, 1)
        assert [tuple(table_row.values()) for table_row in topic.rows(*COLUMNS)][:4] == ROWS
        assert topic.rows("__source")[0] == {"__source": {"lsn": 7}}
        [*_, bad] = topic.rows("_error")
        assert bad["_error"] == (
            f"the schema {plain} cannot be used: the schema is not an envelope of Debezium: it has no struct named "
            "after or before"
        )
        assert topic.deep().problems == ()


def test_an_empty_object_that_the_column_of_its_key_does_not_hold_is_kept_as_json_text(topic: TypedTopic) -> None:
    topic.load()
    append(topic.fake.logs[0], values(event("c", None, {"id": {}, "note": []}), event("c", None, {"id": 2, "new": {}})))
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 0)
    rows = topic.rows("id", "id_2", "note", "note_2", "__op")[4:]
    assert [tuple(row.values()) for row in rows] == [(None, "{}", None, "[]", "c"), (2, None, None, None, "c")]
    assert topic.deep().problems == ()


def test_the_first_load_of_events_without_a_row_has_their_columns(topic: TypedTopic) -> None:  # fault A09
    topic.fake.logs = {0: log_of(values({"op": "t", "ts_ms": 1, "source": {"lsn": 2}}, None, {"op": "m", "ts_ms": 2}))}
    load = topic.load()
    assert (load.error, load.rows, load.bad_records, load.warnings) == (None, 3, 0, ())
    names = ("__op", "__ts_ms", "__source")
    before = [("t", 1, {"lsn": 2}), (None, None, None), ("m", 2, None)]
    assert [tuple(row.values()) for row in topic.rows(*names)] == before
    append(topic.fake.logs[0], values(event("c", None, {"id": 1}), {"op": "m", "message": {"prefix": "p"}}))
    assert topic.load().error is None
    rows = topic.rows("id", "__op", "__message")[3:]
    assert [tuple(row.values()) for row in rows] == [(1, "c", None), (None, "m", {"prefix": "p"})]
    assert topic.deep().problems == ()


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_the_first_events_may_have_only_an_operation(topic: TypedTopic, is_wrapped: bool) -> None:  # fault A09
    events = [{"op": "d", "before": None, "after": {}}, {"op": "t"}]
    topic.fake.logs = {
        0: log_of(values(*({"schema": None, "payload": each} if is_wrapped else each for each in events)))
    }
    assert topic.load().error is None
    append(topic.fake.logs[0], values(event("c", None, {"id": 1})))
    assert topic.load().error is None
    assert [row["__op"] for row in topic.rows("__op")] == ["d", "t", "c"]
    assert topic.deep().problems == ()


def test_a_field_of_events_that_comes_later_gets_a_column_with_its_first_rows(topic: TypedTopic) -> None:  # fault A10
    topic.fake.logs = {0: log_of(values({"op": "c", "after": {"id": 1}, "transaction": None}))}
    assert topic.load().error is None
    later = {"op": "c", "after": {"id": 2}, "transaction": {"id": "7"}, "source": {"lsn": 1}, "ts_ms": 3}
    append(topic.fake.logs[0], values(later))
    assert topic.load().error is None
    assert topic.rows("id", "__transaction", "__source", "__ts_ms") == [
        {"id": 1, "__transaction": None, "__source": None, "__ts_ms": None},
        {"id": 2, "__transaction": {"id": "7"}, "__source": {"lsn": 1}, "__ts_ms": 3},
    ]


def test_changes_of_mongodb_are_rows_or_keep_what_they_say(topic: TypedTopic) -> None:  # fault A19
    change = {"updatedFields": '{"name": "b"}', "removedFields": ["old"], "truncatedArrays": None}
    changes = [
        event("u", updateDescription=change),
        event("d"),
        event("c", None, '{"_id": {"$oid": "x"}, "name": "a"}'),
    ]
    topic.fake.logs = {0: log_of(values(*changes))}
    load = topic.load()
    assert (load.error, load.rows, load.warnings) == (None, 3, ())
    rows = topic.rows("_id", "name", "__op", "__updateDescription", "__source")
    assert [tuple(row.values()) for row in rows] == [
        (None, None, "u", {"updatedFields": '{"name": "b"}', "removedFields": ["old"]}, SOURCE),
        (None, None, "d", None, SOURCE),
        ({"$oid": "x"}, "a", "c", None, SOURCE),
    ]
    append(topic.fake.logs[0], values(event("u", None, '{"_id": {"$oid": "x"}, "more": 1}'), event("u", None, "{")))
    load = topic.load()
    assert (load.error, load.bad_records) == (None, 1)
    rows = topic.rows("more", "__op", "_error", "_raw")[3:]
    assert [tuple(row.values()) for row in rows] == [
        (1, "u", None, None),
        (None, None, "the text of the row: the document is not complete (byte 1)", values(event("u", None, "{"))[0]),
    ]
    assert topic.deep().problems == ()


TIMES = {
    "day": ("int", "io.debezium.time.Date", 15706),
    "at_ms": ("long", "io.debezium.time.Timestamp", 1_357_020_000_001),
    "at_us": ("long", "io.debezium.time.MicroTimestamp", 1_357_020_000_000_001),
    "at_ns": ("long", "io.debezium.time.NanoTimestamp", 1_357_020_000_000_001_999),
    "time_ms": ("int", "io.debezium.time.Time", 86_399_999),
    "time_us": ("long", "io.debezium.time.MicroTime", 1),
    "time_ns": ("long", "io.debezium.time.NanoTime", 1_999),
}
"""Fields whose names in Kafka Connect say that they are dates and times: type in Avro, name, value."""


def avro_envelope(fields: list[dict[str, Any]]) -> dict[str, Any]:
    row = {"type": "record", "name": "Value", "fields": fields}
    members = [{"name": "after", "type": ["null", row]}, {"name": "op", "type": "string"}]
    return {"type": "record", "name": "Envelope", "fields": members}


def avro_event(schema_id: int, schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), {"after": row, "op": "c"})
    return b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()


def test_the_same_events_in_json_and_in_avro_give_the_same_types(topic: TypedTopic, tmp_path: Path) -> None:
    # fault A16
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    named = [{"name": name, "type": {"type": kind, "connect.name": own}} for name, (kind, own, _) in TIMES.items()]
    schema = avro_envelope([*named, {"name": "amount", "type": ["null", amount]}])
    row = {name: value for name, (_, _, value) in TIMES.items()}
    with EmbeddedSchemaRegistry() as registry:
        id_ = registry.register("clicks-value", json.dumps(schema))
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {**topic.format_, "registry": "main"}
        topic.fake.logs = {0: log_of([avro_event(id_, schema, {**row, "amount": Decimal("123.45")})])}
        assert topic.load().error is None
        in_avro = DeltaTable(topic.table.uri).to_pyarrow_table()
        assert topic.deep().problems == ()
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    fields: list[dict[str, Any]] = [
        *({"field": name, "type": {"int": "int32", "long": "int64"}[kind], "name": own}
          for name, (kind, own, _) in TIMES.items()),
        {**decimal, "field": "amount"},
    ]  # fmt: skip
    event_ = {"schema": connect(*fields), "payload": event("c", None, {**row, "amount": "MDk="})}
    topic.folder, topic.format_ = tmp_path / "other", {"format": "debezium"}
    topic.fake.logs = {0: log_of(values(event_))}
    assert topic.load().error is None
    in_json = DeltaTable(topic.table.uri).to_pyarrow_table()
    names = [*TIMES, "amount"]
    assert in_json.select(names).equals(in_avro.select(names))
    assert topic.deep().problems == ()
    [[time_ms, time_us, time_ns, amount_]] = [
        list(row.values()) for row in topic.rows("time_ms", "time_us", "time_ns", "amount")
    ]
    assert (time_ms, time_us, time_ns, amount_) == (86_399_999_000, 1, 1, Decimal("123.45"))


def test_a_column_that_has_numbers_already_keeps_them(topic: TypedTopic) -> None:  # fault A16
    def schema(*, is_named: bool) -> dict[str, Any]:
        kinds = {name: {"type": kind, **({"connect.name": own} if is_named else {})}
                 for name, (kind, own, _) in TIMES.items()}  # fmt: skip
        return avro_envelope([{"name": name, "type": kind} for name, kind in kinds.items()])

    row = {name: value for name, (_, _, value) in TIMES.items()}
    with EmbeddedSchemaRegistry() as registry:
        plain, named = schema(is_named=False), schema(is_named=True)
        ids = [registry.register("clicks-value", json.dumps(each)) for each in (plain, named)]
        topic.registries = {"main": {"url": registry.url}}
        topic.format_ = {**topic.format_, "registry": "main"}
        topic.fake.logs = {0: log_of([avro_event(ids[0], plain, row)])}
        assert topic.load().error is None
        append(topic.fake.logs[0], [avro_event(ids[1], named, row)])
        load = topic.load()
        assert (load.error, load.bad_records, load.warnings) == (None, 0, ())
        assert topic.rows(*TIMES) == [row, row]
        assert topic.deep().problems == ()
