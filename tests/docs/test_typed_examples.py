"""The examples of docs/typed-tables.md are true: settings, queries, and changes of schemas."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from kafka_io.producer.opening import open_producer
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.rewrites.topic_schema import topic_schema
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from resources.table_names import topic_of
from tests.docs.pages import ROOT, code, run_blocks
from tests.fakes.cluster import FakeCluster
from tests.fakes.typed import TypedTopic, append, log_of
from tests.pipelines.schemas.test_schema_headers import log_of as log_with_headers

PAGE = ROOT / "docs" / "typed-tables.md"
TOML = [block.text for block in run_blocks(PAGE, "toml")]
SQL = [block.text for block in run_blocks(PAGE, "sql") if "_error" in block.text]
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "customer", "type": "string"}, {"name": "amount", "type": "double"}],
}
CELLS = {"customer": "Ada", "amount": 7.5}
PAYMENT = '{"properties": {"id": {"type": "integer"}}}'
SHIPMENT = 'syntax = "proto3"; package shop; message Shipment { int64 id = 1; }'
EVENT = b'{"op": "c", "before": null, "after": {"id": 7}, "ts_ms": 5}'
_CODE = re.compile(r"`([^`]+)`")


def framed(id_: int, body: bytes) -> bytes:
    """A value with the frame of Confluent's serializers."""
    return b"\0" + id_.to_bytes(4, "big") + body


def avro(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """A record in Avro, as another program writes it."""
    output = BytesIO()
    fastavro.schemaless_writer(output, dict(schema), dict(record))
    return output.getvalue()


def single_object(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """A record as a single object of Avro."""
    crc = fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(dict(schema)), "CRC-64-AVRO")
    return b"\xc3\1" + bytes.fromhex(crc) + avro(schema, record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A record of a topic, or of one of its tables, and cells of its row."""

    topic: str
    value: bytes
    row: Mapping[str, Any]
    key: bytes | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)


RECORDS: Sequence[Sequence[Sent]] = (
    (Sent(topic="orders", value=b"a", row={"value": "a"}), Sent(topic="logs.web", value=b"b", row={"value": "b"})),
    (Sent(topic="visits", value=b'{"page": "/", "seconds": 3}', row={"page": "/", "seconds": 3}),),
    (
        Sent(
            topic="payments",
            value=b'{"id": 1, "amount": "1.25", "at": "2026-01-31T10:00:00Z", "place": {"city": "Ulm"}, "other": 1}',
            row={"id": 1, "amount": Decimal("1.25"), "place": {"city": "Ulm", "code": None}},
        ),
    ),
    (
        Sent(topic="payments", value=b'{"id": 7}', row={"id": 7}),
        Sent(topic="visits", value=b'{"page": "/", "day": "2026-01-31"}', row={"page": "/", "day": date(2026, 1, 31)}),
    ),
    (Sent(topic="shop.public.orders", value=EVENT, row={"id": 7, "__op": "c", "__ts_ms": 5}),),
    (Sent(topic="shipments", value=framed(2, b"\0\x08\x07"), row={"id": 7}),),
    (Sent(topic="shipments", value=b"\x08\x07", row={"id": 7}),),
    (Sent(topic="visits", value=single_object(ORDER, CELLS), row=CELLS),),
    (
        Sent(topic="orders", value=framed(1, avro(ORDER, CELLS)), row=CELLS),
        Sent(topic="payments", value=framed(3, b'{"id": 7}'), row={"id": 7}),
    ),
    (Sent(topic="orders", value=EVENT, key=b'{"id": 7}', row={"id": 7, "_kafka_key_id": 7}),),
    (
        Sent(
            topic="orders",
            value=json.dumps(CELLS).encode(),
            row={**CELLS, "_kafka_header_ce_type": "shop.order", "_kafka_header_ce_subject": None},
            headers={"ce_type": b"shop.order"},
        ),
    ),
    (
        Sent(topic="events", value=b'{"id": 7}', row={"id": 7}),
        Sent(topic="events/payments", value=b'{"id": 8}', row={"id": 8}, headers={"ce_type": b"shop.payment.made"}),
    ),
    (Sent(topic="shop/orders", value=framed(4, avro(ORDER, CELLS)), row=CELLS),),
    (Sent(topic="orders", value=json.dumps(CELLS).encode(), row=CELLS),),
)
"""For each block of settings, in the order of the page: records for all its topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A folder with the files that the settings of the page name, a broker, and a registry."""

    folder: Path
    broker: ModernBrokerServer
    registry: EmbeddedSchemaRegistry

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.folder / "penstock.toml"

    def configure(self, block: str) -> None:
        """Write a complete settings file with a block of the page, for this broker and registry."""
        begin = "" if "[clusters." in block else 'lake = "lake"\n[clusters.main]\nbootstrap = "localhost:9092"\n'
        end = "" if "[registries." in block else '[registries.main]\nurl = "https://registry.example.org"\n'
        text = (begin + block + end).replace("localhost:9092", f"127.0.0.1:{self.broker.port}")
        self.settings.write_text(text.replace("https://registry.example.org", self.registry.url))

    def send(self, record: Sent) -> None:
        """Send a record."""
        with open_producer(bootstrap=f"127.0.0.1:{self.broker.port}") as producer:
            producer.send(topic_of(record.topic), record.value, key=record.key, headers=(*record.headers.items(),))

    def penstock(self, *arguments: str) -> Result:
        """Run a command."""
        return CliRunner().invoke(main, ["--settings", str(self.settings), *arguments])

    def table(self, topic: str) -> DeltaTable:
        """The table of a topic."""
        return DeltaTable(DeltaLakeTable.of(Lake.of(Settings.load(self.settings)), "main", topic).uri)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    for file, text in {
        "payment.json": PAYMENT,
        "shop/shipment.proto": SHIPMENT,
        "visit.avsc": json.dumps(ORDER),
    }.items():
        (tmp_path / "schemas" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "schemas" / file).write_text(text)
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")
    with ModernBrokerServer(config) as broker, EmbeddedSchemaRegistry() as registry:
        registry.register("orders-value", json.dumps(ORDER))
        registry.register("shipments-value", SHIPMENT, schema_type="PROTOBUF")
        registry.register("payments-value", PAYMENT, schema_type="JSON")
        registry.register("shop.Order", json.dumps({**ORDER, "namespace": "shop"}))
        yield Home(folder=tmp_path, broker=broker, registry=registry)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TOML)))
def test_the_settings_of_the_page_load_records_of_each_of_their_topics(number: int, home: Home) -> None:
    assert len(RECORDS) == len(TOML)
    home.configure(TOML[number])
    for record in RECORDS[number]:
        home.send(record)
        loaded = home.penstock("load", topic_of(record.topic))
        assert loaded.exit_code == 0, loaded.output
        [row] = home.table(record.topic).to_pyarrow_table().to_pylist()
        assert {name: row[name] for name in (*record.row, "_error")} == {**record.row, "_error": None}
    topics = Settings.load(home.settings).topics.sections
    assert len(topics) == len(RECORDS[number])


def test_a_mistyped_key_is_an_error_that_names_the_key(home: Home) -> None:
    [message] = [text for text in code(PAGE) if "did you mean" in text]
    home.configure(TOML[0].replace("[topics.orders]", "[topics.orders]\nmax_bad_shares = 0.1"))
    for command in ("load", "schema"):
        failed = home.penstock(command, "orders")
        assert failed.exit_code != 0
        assert message in " ".join(failed.output.split())


def test_the_queries_for_bad_records_give_reasons_and_bytes(tmp_path: Path) -> None:
    """The page has a query by reason, one with the bytes, and one without these records."""
    values = [b'{"customer": "Ada", "amount": 2}', b"{", b"\xff", None, b'{"customer": "Ada", "amount": 3}', b"\xfe"]
    with FakeCluster(logs={0: log_of(values)}) as fake:
        columns = {"customer": "string", "amount": "double"}
        format_ = {"format": "json", "columns": columns, "max_bad_share": 1}
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)
        assert topic.load().error is None
    orders = DeltaTable(topic.table.uri).to_pyarrow_dataset()
    assert orders is not None
    with duckdb.connect() as database:
        database.register("orders", orders)
        by_reason, with_bytes, without = (database.sql(query).fetchall() for query in SQL)
    assert [row[1:] for row in by_reason] == [(2, 0, 5), (1, 0, 1)]
    assert [(row[1], *row[4:]) for row in with_bytes] == [(5, None, "FE"), (2, None, "FF"), (1, "{", "7B")]
    assert {row[3] for row in with_bytes} == {row[0] for row in by_reason}
    assert without == [("Ada", 5.0)]


def test_the_query_for_headers_counts_the_events_of_a_source(tmp_path: Path) -> None:
    records = [(b"{}", [("ce_type", kind), ("ce_source", b"/shop")]) for kind in (b"b", b"a", b"b")]
    with FakeCluster(logs={0: log_with_headers([*records, (b"{}", [("ce_type", b"c")])])}) as fake:
        format_ = {"format": "json", "header_columns": ["ce_type", "ce_source"]}
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_)
        assert topic.load().error is None
    with duckdb.connect() as database:
        database.register("orders", DeltaTable(topic.table.uri).to_pyarrow_dataset())
        [query] = [block.text for block in run_blocks(PAGE, "sql") if "_kafka_header_" in block.text]
        assert database.sql(query).fetchall() == [("a", 1), ("b", 2)]


def test_the_query_for_schemas_counts_the_records_of_each(tmp_path: Path) -> None:
    fake = FakeCluster(logs={0: log_of([])})
    with fake, EmbeddedSchemaRegistry() as registry:
        id_ = registry.register("orders-value", json.dumps(ORDER))
        values = [framed(id_, avro(ORDER, CELLS)), framed(id_ + 1, b""), None]
        append(fake.logs[0], values)
        registries = {"main": {"url": registry.url}}
        format_ = {"format": "avro", "max_bad_share": 1}
        topic = TypedTopic(fake=fake, folder=tmp_path / "lake", format_=format_, registries=registries)
        assert topic.load().error is None
    with duckdb.connect() as database:
        database.register("orders", DeltaTable(topic.table.uri).to_pyarrow_dataset())
        [query] = [block.text for block in run_blocks(PAGE, "sql") if "_kafka_schema_id" in block.text]
        assert [row[:2] for row in database.sql(query).fetchall()] == [(1, 1), (2, 1), (None, 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A row of the table of changes: two schemas, the columns after the second one, and two rows."""

    name: str
    schemas: tuple[Mapping[str, Any], Mapping[str, Any]]
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


def schema_of(cell: str) -> Mapping[str, Any]:
    """The schema in a cell: its fields with their types, and the aliases of the only field."""
    fields, *aliases = _CODE.findall(cell)
    return {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": kind, "aliases": aliases} for name, kind in json.loads(fields).items()],
    }


def changes() -> Iterator[Change]:
    """The rows of the table of changes on the page."""
    lines = PAGE.read_text().partition("| change | before | after | columns | rows |\n")[2].partition("\n\n")[0]
    for line in lines.splitlines()[1:]:
        name, before, after, columns, rows = (cell.strip() for cell in line.strip("|").split("|"))
        yield Change(
            name=name,
            schemas=(schema_of(before), schema_of(after)),
            columns=_CODE.findall(columns),
            rows=[json.loads(row) for row in _CODE.findall(rows)],
        )


def record_of(schema: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a row: the value of a field is in the column of its name, in a second one, or in the only one."""
    values = {}
    for field_ in schema["fields"]:
        name = field_["name"]
        cells = [row[column] for column in row if column in {name, f"{name}_2"} or len(row) == 1]
        value = next((cell for cell in cells if cell is not None), None)
        if isinstance(value, dict):  # a union: one member is not null
            [value] = [member for member in value.values() if member is not None]
        values[name] = value
    return values


CHANGES = list(changes())


def test_the_table_of_changes_has_each_kind_of_change() -> None:
    kinds = ("add a field", "drop", "rename", "reorder", "promote", "another type", "union")
    assert [kind for kind in kinds if not any(kind in change.name for change in CHANGES)] == []


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_of_the_schema_gives_the_columns_and_rows_of_the_page(change: Change, tmp_path: Path) -> None:
    fake = FakeCluster(logs={0: log_of([])})
    with fake, EmbeddedSchemaRegistry() as registry:
        topic = TypedTopic(
            fake=fake,
            folder=tmp_path / "lake",
            format_={"format": "avro"},
            registries={"main": {"url": registry.url}},
        )
        for schema, row in zip(change.schemas, change.rows, strict=True):
            id_ = registry.register("orders-value", json.dumps(schema))
            append(fake.logs[0], [framed(id_, avro(schema, record_of(schema, row)))])
            load = topic.load()
            assert (load.error, load.bad_records) == (None, 0)
    of_ids, *shown = topic_schema(topic.table, topic.settings.format_of("clicks")).columns
    assert of_ids.name == "_kafka_schema_id"
    assert [f"{column.name} {column.type}" for column in shown] == list(change.columns)
    assert topic.rows(*(column.name for column in shown)) == list(change.rows)
