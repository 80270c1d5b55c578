"""A topic whose values have schemas of several names: each name has its own table, with the columns of its schemas."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from kafka_io.records.build import Record, record_batch
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main
from pipelines.comparison.deep_verify import deep_verify
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.ledger.ledger import LedgerEntry
from pipelines.load.load import Loader
from pipelines.maintenance.retire import retire
from pipelines.reports.outcome import TopicLoad
from pipelines.rewrites.redecode import RedecodeRequest, redecode
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from pipelines.rewrites.replay_result import TopicReplay
from resources.kafka import open_cluster, open_schema_registry
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster, Log
from tests.fakes.loaders import loader_of
from tests.fakes.registry_faults import sends
from tests.fakes.typed import CountedFetches, TypedTopic, no_spark
from tests.pipelines.fetch.test_debezium_table import avro_envelope, avro_event
from tests.pipelines.routes.test_routed_load import problems_of_topic
from tests.pipelines.schemas.test_schema_headers import guid_of

pytestmark = pytest.mark.slow  # each test fills a table and changes it

NAMES = {"shop.Order": "orders", "shop\\.pa.*": "payments"}
Headers = tuple[tuple[bytes, bytes], ...]


def avro(name: str, *fields: str) -> str:
    """A record with fields that are longs."""
    namespace, _, short = name.rpartition(".")
    members = [{"name": field, "type": "long"} for field in fields]
    return json.dumps({"type": "record", "name": short, "namespace": namespace, "fields": members})


def framed(id_: int, body: bytes = b"\2", path: bytes = b"") -> bytes:
    """A value with the frame of Confluent's serializers. The body is the number 1, as Avro writes it."""
    return b"\0" + id_.to_bytes(4, "big") + path + body


@dataclass(kw_only=True)
class Shop:
    """The topic `clicks`, its registry, and the tables of its records."""

    topic: TypedTopic
    registry: EmbeddedSchemaRegistry

    def put(self, *values: bytes | None, headers: Mapping[int, Headers] | None = None) -> None:
        """Append records with these values to the only partition; `headers` are those of some of them."""
        log = self.topic.fake.logs[0]
        records = [
            Record(
                offset=log.end + number,
                timestamp=1_700_000_000_000 + number,
                key=b"%d" % number,
                value=value,
                headers=(headers or {}).get(number, ()),
            )
            for number, value in enumerate(values)
        ]
        log.entries.append((records[-1].offset, record_batch(records)))
        log.end += len(records)

    def table(self, route: str = "") -> DeltaLakeTable:
        """The table of a route."""
        return DeltaLakeTable.of(Lake.of(self.topic.settings), "main", f"clicks/{route}" if route else "clicks")

    def entry(self, route: str = "") -> LedgerEntry:
        """The newest entry of the table of a route."""
        snapshot = self.table(route).existing()
        assert snapshot is not None
        assert snapshot.entry is not None
        return snapshot.entry

    def rows(self, route: str = "", *columns: str) -> dict[int, Any]:
        """The values of columns, by default of all for fields, by offset. A single column has no list around it."""
        stored = DeltaTable(self.table(route).uri).to_pyarrow_table()
        names = columns or tuple(sorted(self.columns(route)))
        lists = [stored.column(name).to_pylist() for name in names]
        values = lists[0] if len(names) == 1 else list(zip(*lists, strict=True)) or [()] * stored.num_rows
        return dict(sorted(zip(stored.column("_kafka_offset").to_pylist(), values, strict=True)))

    def columns(self, route: str = "") -> set[str]:
        """The columns for fields in the table of a route."""
        names = DeltaTable(self.table(route).uri).to_pyarrow_table().schema.names
        return {name for name in names if not name.startswith("_")}

    def offsets(self, *routes: str) -> list[list[int]]:
        """The offsets in each table."""
        return [list(self.rows(route, "_kafka_offset")) for route in routes or ("", "orders", "payments")]

    def load(self, **options: Any) -> TopicLoad:
        """Load the topic without an error."""
        load = self.topic.load(**options)
        assert load.error is None
        return load

    def prove(self, *routes: str) -> None:
        """All tables are proven together, and each has the rows of the brokers; replays would change none."""
        assert problems_of_topic(self.table()) == []
        for route in routes or ("", "orders", "payments"):
            with open_cluster(self.topic.settings, "main") as cluster:
                own = self.table(route)
                format_ = self.topic.settings.format_of(own.where.topic or "")
                open_registry = partial(open_schema_registry, self.topic.settings)
                proof = deep_verify(own, cluster, format_=format_, open_registry=open_registry)
                assert (proof.problems, proof.failure) == ((), None)
            again = self.replay(route)
            assert (again.error, again.changed) == (None, False)

    def replay(self, route: str = "") -> TopicReplay:
        """Replay all of the table of a route."""
        own = self.table(route)
        request = ReplayRequest.parse(str(own.where.topic), "earliest", "latest", now=datetime(2026, 1, 1, tzinfo=UTC))
        with open_cluster(self.topic.settings, "main") as cluster:
            return replay(Loader.of(self.topic.settings, cluster, no_spark).run, own, request)

    def with_tables(self, **changes: Any) -> None:
        """Change settings in `[topics.clicks.tables]`."""
        self.topic.format_ = {**self.topic.format_, "tables": {**self.topic.format_["tables"], **changes}}


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as embedded:
        yield embedded


@pytest.fixture
def shop(fake: FakeCluster, tmp_path: Path, registry: EmbeddedSchemaRegistry) -> Iterator[Shop]:
    fake.logs = {0: Log(entries=[], end=0)}
    with fake:
        format_ = {"format": "avro", "tables": {"by": "schema", "names": NAMES}, "max_bad_share": 1}
        topic = TypedTopic(
            fake=fake, folder=tmp_path / "lake", format_=format_, registries={"main": {"url": registry.url}}
        )
        yield Shop(topic=topic, registry=registry)


def test_each_name_of_an_avro_schema_has_its_table_with_its_columns(shop: Shop) -> None:
    """As RecordNameStrategy and TopicRecordNameStrategy register schemas, and TopicNameStrategy new versions."""
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    paid, payout = (
        shop.registry.register(f"clicks-{name}", avro(name, name[5:])) for name in ("shop.paid", "shop.payout")
    )
    note = shop.registry.register("note", avro("shop.Note", "text"))
    shop.put(framed(order), framed(paid), framed(note), framed(payout), framed(order))
    fetches = CountedFetches()
    load = shop.load(fetch=fetches)
    assert {own.topic: own.rows for own in load.of_tables} == {"clicks": 1, "clicks/orders": 2, "clicks/payments": 2}
    assert fetches.sizes == [5, 5]  # the second fetch has the names and the columns
    assert shop.offsets() == [[2], [0, 4], [1, 3]]
    assert [shop.columns(route) for route in ("", "orders", "payments")] == [{"text"}, {"amount"}, {"paid", "payout"}]
    assert shop.rows("payments") == {1: (1, None), 3: (None, 1)}
    assert shop.rows("orders", "_kafka_schema_id") == {0: order, 4: order}
    ids = [shop.entry(route).schemas.values for route in ("", "orders", "payments")]
    assert ids == [(note,), (order,), (paid, payout)]
    assert [text.id for text in shop.entry("orders").schemas.value_texts] == [order]
    shop.prove()
    wider = shop.registry.register("shop.Order", avro("shop.Order", "amount", "tax"))
    shop.put(framed(wider, b"\2\4"), framed(paid))
    assert sum(own.rows for own in shop.load(fetch=fetches).of_tables) == 2
    assert fetches.sizes == [5, 5, 2, 2]
    shop.put(framed(wider, b"\2\6"), framed(payout))
    shop.load(fetch=fetches)
    assert fetches.sizes == [5, 5, 2, 2, 2]  # all ids are in the ledgers
    assert shop.rows("orders") == {0: (1, None), 4: (1, None), 5: (1, 2), 7: (1, 3)}
    assert [shop.columns(route) for route in ("", "payments")] == [{"text"}, {"paid", "payout"}]
    shop.prove()


def test_dropped_fields_are_columns_of_no_table(shop: Shop) -> None:
    order, note = (
        shop.registry.register(name, avro(name, field, "secret"))
        for name, field in (("shop.Order", "amount"), ("shop.Note", "text"))
    )
    shop.topic.format_ = {**shop.topic.format_, "load": {"drop": ["secret"]}}
    shop.put(framed(order, b"\2\4"), framed(note, b"\2\4"))
    shop.load()
    assert [shop.columns(route) for route in ("", "orders")] == [{"text"}, {"amount"}]
    wider = shop.registry.register("shop.Order", avro("shop.Order", "secret", "amount", "tax"))
    shop.put(framed(wider, b"\2\4\6"))
    shop.load()
    assert shop.rows("orders") == {0: (1, None), 2: (2, 3)}
    shop.prove("", "orders")


def test_records_without_a_type_are_in_the_topics_own_table(shop: Shop) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    number = shop.registry.register("number", '"long"')
    union = shop.registry.register("union", json.dumps(["null", json.loads(avro("shop.Order", "amount"))]))
    glue = b"\3\0" + bytes(16) + b"\2"
    shop.put(framed(order), None, b"", b"text", b"\0\0", glue, framed(number), framed(union, b"\2\2"))
    shop.load()
    assert shop.offsets() == [[1, 2, 3, 4, 5, 6, 7], [0], []]
    errors = shop.rows("", "_error")
    assert [offset for offset, error in errors.items() if error] == [2, 3, 4, 5]
    assert errors[3] == "the value has no frame with the id of a schema: its first byte is not 0"
    assert "AWS Glue" in errors[5]
    assert [offset for offset, is_tombstone in shop.rows("", "_tombstone").items() if is_tombstone] == [1]
    shop.prove()


FILE = """syntax = "proto3"; package shop;
message Money { int64 cents = 1; }
message Order { int64 id = 1; Money total = 2; message Line { string sku = 1; int64 id = 2; } }
message Payment { int64 paid = 1; }
message Refund { string reason = 1; string id = 2; }
"""
MONEY, ORDER, LINE, PAYMENT, REFUND = b"\0", b"\2\2", b"\4\2\0", b"\2\4", b"\2\6"
"""The index paths of the message types, as Confluent's serializers write them."""
OF_MESSAGES = {"shop.Order": "orders", "shop\\.Order\\..*": "lines", "shop.Payment": "payments"}


def test_each_message_type_of_one_protobuf_file_has_its_table(shop: Shop) -> None:
    id_ = shop.registry.register("clicks-value", FILE, schema_type="PROTOBUF")
    shop.topic.format_ = {**shop.topic.format_, "format": "protobuf"}
    shop.with_tables(names=OF_MESSAGES)
    order, line, refund = b"\x08\1\x12\2\x08\5", b"\x0a\1x\x10\7", b"\x0a\1r\x12\1a"
    shop.put(
        framed(id_, order, ORDER),
        framed(id_, line, LINE),
        framed(id_, b"\x08\2", PAYMENT),
        framed(id_, refund, REFUND),
        None,
        framed(id_, b"", b"\2\x10"),  # the file has no such message
        framed(id_, b"", b"\x80"),
    )
    fetches = CountedFetches()
    shop.load(fetch=fetches)
    assert fetches.sizes == [7, 7]  # with the names, the router has reported the message types
    routes = ("", "lines", "orders", "payments")
    assert shop.offsets(*routes) == [[3, 4, 5, 6], [1], [0], [2]]
    columns = [shop.columns(route) for route in routes]
    assert columns == [{"id", "reason"}, {"id", "sku"}, {"id", "total"}, {"paid"}]
    assert (shop.rows("orders"), shop.rows("lines")) == ({0: (1, {"cents": 5})}, {1: (7, "x")})
    assert shop.rows("", "_error")[5] == "the .proto file has no message with the index path [8]"
    assert shop.entry("orders").schemas.messages == (f"{id_} shop.Order",)
    shop.prove(*routes)
    shop.put(framed(id_, b"\x08\2", PAYMENT), framed(id_, refund, REFUND))
    shop.load(fetch=fetches)
    assert fetches.sizes == [7, 7, 2]
    shop.put(framed(id_, b"\x08\2", MONEY))  # the router knows the name, and the table has no columns for it yet
    shop.load(fetch=fetches)
    assert fetches.sizes == [7, 7, 2, 1, 1]
    assert shop.rows("")[9] == (2, None, None)
    assert shop.columns("") == {"cents", "id", "reason"}
    shop.prove(*routes)


def test_changes_of_several_database_tables_in_one_topic_have_a_table_each(shop: Shop) -> None:
    """Debezium names the envelope of a change after the table of the database."""
    shop.topic.format_ = {**shop.topic.format_, "format": "debezium", "registry": "main"}
    shop.with_tables(names={"db\\.public\\.orders\\.Envelope": "orders"}, others="payments")
    for table in ("orders", "payments"):
        envelope = {**avro_envelope([{"name": f"of_{table}", "type": "long"}]), "namespace": f"db.public.{table}"}
        id_ = shop.registry.register(f"clicks-{table}", json.dumps(envelope))
        shop.put(avro_event(id_, envelope, {f"of_{table}": 7}))
    shop.put(None)
    shop.load()
    assert (shop.rows("orders", "of_orders", "__op"), shop.rows("payments", "of_payments")) == ({0: (7, "c")}, {1: 7})
    assert shop.offsets("") == [[2]]
    shop.prove()


def test_a_guid_is_asked_for_before_the_index_path_behind_it_says_the_message_type(shop: Shop) -> None:
    id_ = shop.registry.register("clicks-value", FILE, schema_type="PROTOBUF")
    shop.topic.format_ = {**shop.topic.format_, "format": "protobuf"}
    shop.with_tables(names=OF_MESSAGES, others="fail")
    guid = guid_of(shop.registry, id_)
    shop.put(guid + PAYMENT + b"\x08\2", b"\x08\3", headers={1: ((b"__value_schema_id", guid + PAYMENT),)})
    shop.load()
    assert (shop.rows("payments"), shop.columns()) == ({0: 2, 1: 3}, set())
    assert [shop.entry(route).schemas.values for route in ("", "payments")] == [(), (id_,)]
    shop.prove("", "lines", "orders", "payments")


def test_the_title_of_a_json_schema_is_its_name(shop: Shop) -> None:
    def schema(field: str, **more: str) -> str:
        return json.dumps({"type": "object", "properties": {field: {"type": "integer"}}, **more})

    order = shop.registry.register("Order", schema("amount", title="Order"), schema_type="JSON")
    note = shop.registry.register("note", schema("text"), schema_type="JSON")
    shop.topic.format_ = {**shop.topic.format_, "format": "json", "registry": "main"}
    shop.with_tables(names={"Order": "orders"}, others="fail")
    shop.put(framed(order, b'{"amount": 1}'), framed(note, b'{"text": 2}'), None, b"{}")
    shop.load()
    assert (shop.rows("orders"), shop.columns()) == ({0: 1}, {"text"})
    assert shop.offsets("") == [[1, 2, 3]]
    shop.prove("", "orders")


@pytest.mark.parametrize("id_bytes", [4, 8])
def test_ids_in_headers_guids_and_ids_of_eight_bytes_name_schemas_too(shop: Shop, id_bytes: int) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    paid = shop.registry.register("shop.paid", avro("shop.paid", "paid"))
    guid = guid_of(shop.registry, paid)
    shop.topic.format_ = {**shop.topic.format_, "id_bytes": id_bytes}
    shop.put(
        b"\2",
        b"\4",
        guid + b"\6",
        b"\0" + order.to_bytes(8, "big") + b"\x08" if id_bytes == 8 else framed(order, b"\x08"),
        b"\2",
        headers={
            0: ((b"__value_schema_id", framed(order, b"")),),
            1: ((b"__value_schema_id", guid),),
            4: ((b"__value_schema_id", b"damaged"),),
        },
    )
    shop.load()
    assert (shop.rows("orders"), shop.rows("payments")) == ({0: 1, 3: 4}, {1: 2, 2: 3})
    assert shop.rows("", "_error") == {4: "the header __value_schema_id has no id of a schema"}
    shop.prove()


def test_a_schema_that_the_registry_lacks_stops_the_partition_until_it_has_it(shop: Shop) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    lacking, guid = order + 1, UUID(int=7)
    of_other = Record(offset=0, timestamp=1_700_000_000_000, key=None, value=framed(order))
    shop.topic.fake.logs = {**shop.topic.fake.logs, 1: Log(entries=[(0, record_batch([of_other]))], end=1)}
    shop.put(framed(order), framed(lacking), b"\1" + guid.bytes + b"\2")
    load = shop.topic.load()
    [failure] = load.failures
    assert (failure.kind, failure.code, failure.where["partition"]) == ("RouteUnknown", "PS-511", "0")
    assert (
        f"the record at offset 1 has the schema {lacking}, and the registry main has no schema with this id: register "
        f'it, or correct `registry`; or name a table for it, such as "id:{lacking}" = "main"'
    ) in str(load.error)
    assert sum(own.rows for own in load.of_tables) == 1  # of the other partition
    assert shop.registry.register("shop.paid", avro("shop.paid", "paid")) == lacking
    load = shop.topic.load()
    assert f"offset 2 has the schema {guid}, and the registry main has no schema with this GUID" in str(load.error)
    shop.with_tables(names={f"id:{guid}": "main", **NAMES})
    shop.load()
    assert (shop.rows("payments"), shop.offsets("")) == ({1: 1}, [[2]])
    assert "GUID" in shop.rows("", "_error")[2]
    shop.prove()


def test_a_table_for_an_id_stays_whatever_the_registry_knows_later(shop: Shop) -> None:
    """Otherwise a replay would put the records into another table, and they would be in both (fault P23)."""
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    shop.put(framed(order), framed(order + 1))
    assert shop.topic.load().error is not None
    shop.with_tables(names={**NAMES, "id:[0-9]*0": "main", f"id:{order + 1}": "odd"})
    shop.load()
    assert shop.offsets("", "orders", "odd") == [[], [0], [1]]
    assert shop.registry.register("shop.Order", avro("shop.Order", "tax")) == order + 1
    shop.put(framed(order + 1), framed(order))
    shop.load()
    assert shop.offsets("", "orders", "odd") == [[], [0, 3], [1, 2]]
    assert shop.rows("odd") == {1: None, 2: 1}
    request = RedecodeRequest(
        table=shop.table("odd"),
        format=shop.topic.settings.format_of("clicks/odd"),
        open_registry=partial(open_schema_registry, shop.topic.settings),
        run="again",
    )
    assert redecode(request).decoded == 1
    assert shop.rows("odd") == {1: 1, 2: 1}
    shop.prove("", "orders", "odd")
    former = shop.topic.format_
    shop.with_tables(names={**NAMES, f"id:{order + 1}": "odd", f"id:{order}": "main"})
    shop.put(framed(order))
    for text in (str(shop.topic.load().error), str(shop.replay("orders").error)):
        assert text.startswith("RoutesChanged: ")
    shop.topic.format_ = former
    shop.with_tables(names={**former["tables"]["names"], f"id:{order}": "main"})
    error = str(shop.topic.load().error)
    assert f'another table for "id:{order}" than clicks/orders, which has records of this schema' in error
    shop.topic.format_ = former
    shop.load()
    shop.prove("", "orders", "odd")


# fault A11
def test_an_id_that_has_another_schema_now_stops_loads_and_replays_of_all_tables(shop: Shop) -> None:
    """A replay of one table also asks for the ids of the others: their records would be rows of this one."""
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    paid = shop.registry.register("shop.paid", avro("shop.paid", "paid"))
    shop.put(framed(order), framed(paid))
    shop.load()
    changed = {"schema": avro("shop.Order", "paid")}
    shop.registry.inject(sends(json.dumps(changed).encode()), path=f"/schemas/ids/{paid}", times=None)
    shop.put(framed(paid))
    for error in (shop.topic.load().error, shop.replay("orders").error, shop.replay("").error):
        assert str(error).startswith(f"SchemaChanged: the registry main has another schema with the id {paid} ")
    assert shop.offsets() == [[], [0], [1]]
    shop.topic.choices = {"on_schema_changed": "adopt"}
    shop.load()
    assert shop.offsets() == [[], [0, 2], [1]]


def test_rules_for_fields_belong_to_the_table_of_the_record(shop: Shop) -> None:
    """A table has no column for a field with a rule, so the ledger keeps which message types of Protobuf it has met."""
    id_ = shop.registry.register("clicks-value", FILE, schema_type="PROTOBUF")
    rules = {"mask": {"id": 0}, "hash": {"sku": "people"}, "skip": "sku = 'no'", "max_skipped_share": 1}
    secret = shop.topic.folder.with_name("people")
    secret.write_bytes(bytes(range(32)))
    shop.topic.secrets = {"people": {"id": "k1", "key": f"file:{secret}"}}
    shop.topic.format_ = {
        **shop.topic.format_,
        "format": "protobuf",
        "load": rules,
        "personal": ["reason"],
        "header_columns": ["trace"],
    }
    shop.with_tables(names=OF_MESSAGES)
    line, refund = b"\x0a\1x\x10\7", b"\x0a\6Zelda!\x12\1a"
    for first in (0, 4):
        shop.put(
            framed(id_, line, LINE),
            framed(id_, b"\x0a\2no", LINE),
            framed(id_, refund, REFUND),
            framed(id_, b"\x08\1", ORDER),
            headers={0: ((b"trace", b"t"),)},
        )
        fetches = CountedFetches()
        shop.load(fetch=fetches)
        assert fetches.sizes == ([4, 4] if first == 0 else [4])
    routes = ("", "lines", "orders", "payments")
    assert shop.offsets(*routes) == [[2, 6], [0, 4], [3, 7], []]
    assert shop.rows("lines", "id", "_kafka_header_trace") == dict.fromkeys((0, 4), (0, "t"))
    hashes = set(shop.rows("lines", "sku").values())
    assert len(hashes) == 1
    assert hashes.pop().startswith("k1:")
    assert shop.entry("lines").ranges[-1].gaps == {"filtered": 1, "routed": 2}
    assert shop.rows("", "reason") == dict.fromkeys((2, 6), "Zelda!")
    log = "".join(path.read_text() for path in Path(shop.table().uri, "_delta_log").glob("*.json"))
    assert "Zelda" not in log
    shop.prove(*routes)


def test_a_corrupt_batch_is_skipped_in_all_tables_and_kept_once(shop: Shop) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    shop.put(framed(order), None)
    shop.put(framed(order), framed(order))
    shop.put(framed(order), None)
    last, data = shop.topic.fake.logs[0].entries[1]
    shop.topic.fake.logs[0].entries[1] = (last, data[:-1] + bytes([data[-1] ^ 1]))
    load = shop.topic.load()
    assert str(load.error).startswith("Corrupt")
    shop.topic.choices = {"on_corrupt": "skip"}
    shop.load()
    assert shop.offsets() == [[1, 5], [0, 4], []]
    kept = list(shop.topic.folder.rglob("_quarantine/*.bytes"))
    assert len(kept) == 1
    assert problems_of_topic(shop.table()) == []


def test_rows_of_a_table_can_be_retired_and_erased_and_stay_away(shop: Shop) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    paid = shop.registry.register("shop.paid", avro("shop.paid", "paid"))
    shop.put(framed(order), framed(paid))
    shop.load()
    retire(shop.table("orders"), datetime.now(UTC).date() + timedelta(days=1), dry_run=False)
    shop.put(framed(order), framed(order, b"\4"), framed(paid))
    shop.load()
    assert shop.offsets() == [[], [2, 3], [1, 4]]
    shop.prove()
    assert shop.offsets() == [[], [2, 3], [1, 4]]


@pytest.fixture
def penstock(shop: Shop, tmp_path: Path) -> Callable[..., Sequence[Mapping[str, Any]]]:
    """Run a command with a settings file, and return its results."""
    file = tmp_path / "penstock.toml"
    bootstrap = ",".join(broker.address for broker in shop.topic.fake.bootstrap)
    file.write_text(
        f'lake = "{shop.topic.folder}"\n[clusters.main]\nbootstrap = "{bootstrap}"\n[caps]\nattempts = 1\n'
        f'[registries.main]\nurl = "{shop.registry.url}"\n[topics.clicks]\nformat = "avro"\nmax_bad_share = 1\n'
        '[topics.clicks.tables]\nby = "schema"\nothers = "fail"\n'
        'names = { "shop.Order" = "orders", "shop\\\\.pa.*" = "payments" }\n'
        '[topics."clicks/payments"]\nformat = "avro"\nkeep_days = 400\n'
    )

    def run(*words: str) -> Sequence[Mapping[str, Any]]:
        result = CliRunner().invoke(main, ["--settings", str(file), *words, "--json"])
        assert result.exit_code == 0, result.output
        records: Sequence[Mapping[str, Any]] = json.loads(result.stdout)["results"]
        return records

    return run


def test_commands_take_the_tables_of_a_topic_by_schema(
    shop: Shop, penstock: Callable[..., Sequence[Mapping[str, Any]]]
) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    paid = shop.registry.register("shop.paid", avro("shop.paid", "paid"))
    shop.put(framed(order), framed(paid), framed(order, b""), None, framed(order, b"\4"))
    loaded = penstock("load", "clicks")
    assert [(own["topic"], own["rows"]) for own in loaded] == [
        ("clicks", 1),
        ("clicks/orders", 3),
        ("clicks/payments", 1),
    ]
    assert [own["proven"] for own in penstock("verify", "clicks", "--tables", "--deep")] == [True] * 3
    [redecoded] = penstock("redecode", "clicks/orders")
    assert (redecoded["decoded"], redecoded["bad_records"]) == (0, 1)
    [erased] = penstock("erase", "clicks/orders", "--where", "amount = 2", "--yes")
    assert erased["rows"] == 1
    [replayed] = penstock("replay", "clicks/orders", "--from", "earliest", "--to", "latest")
    assert replayed["changed"] is False
    penstock("clean", "clicks", "--delete")
    shop.registry.register("clicks-value", avro("shop.Order", "newest"))
    shown = {name: penstock("schema", name)[0] for name in ("clicks", "clicks/orders")}
    assert [[schema["id"] for schema in own["schemas"]] for own in shown.values()] == [[], [order]]
    assert [column["name"] for column in shown["clicks/orders"]["columns"]] == ["_kafka_schema_id", "amount"]
    assert shop.offsets() == [[3], [0, 2], [1]]
    assert [own["rows"] for own in penstock("load", "clicks")] == [0, 0, 0]
    assert [own["proven"] for own in penstock("verify", "--all", "--tables", "--deep")] == [True] * 3


def test_a_table_with_schemas_elsewhere_stops_the_load(shop: Shop) -> None:
    order = shop.registry.register("shop.Order", avro("shop.Order", "amount"))
    shop.put(framed(order))
    topics = {"clicks": shop.topic.format_, "clicks/orders": {"format": "raw"}}
    settings = type(shop.topic.settings).model_validate(
        {**shop.topic.settings.model_dump(exclude={"topics", "choices", "registries"}), "topics": topics}
        | {"registries": shop.topic.registries}
    )
    with open_cluster(settings, "main") as cluster:
        load = loader_of(settings, cluster, no_spark).load("clicks")
    assert '[topics."clicks/orders"]: its topic has by = "schema" in [topics.NAME.tables], so this table' in str(
        load.error
    )
