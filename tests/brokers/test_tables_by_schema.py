"""Records of several schemas from a real broker are in the tables of their names, and each offset is in exactly one."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import fastavro
import pytest
from deltalake import DeltaTable

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.comparison.deep_verify import deep_verify
from pipelines.demo.data import register
from pipelines.formats.tables import lake_table
from pipelines.load.load import Loader
from pipelines.table.lake_table import LakeTable
from pipelines.verify.topic_tables import other_tables, verify_topic
from resources.kafka import open_cluster, open_schema_registry
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.brokers.shared import SharedBroker
from tests.thorough import first

pytestmark = [pytest.mark.brokers]

KEY = b"k"


def _schema(name: str, *fields: str) -> dict[str, Any]:
    members = [{"name": field, "type": "long"} for field in fields]
    return {"type": "record", "namespace": "shop", "name": name, "fields": members}


def _frame(schema_id: int, schema: dict[str, Any], **fields: int) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, schema, fields)
    return b"\0" + schema_id.to_bytes(4, "big") + sink.getvalue()


def _no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def _rows(table: LakeTable, *columns: str) -> list[tuple[Any, ...]]:
    """The values of columns by offset."""
    stored = DeltaTable(table.uri).to_pyarrow_table().sort_by("_kafka_offset")
    return list(zip(*(stored.column(name).to_pylist() for name in ("_kafka_offset", *columns)), strict=True))


@pytest.mark.parametrize("version", first(1, ["3.9.1", "4.1.0"]))
def test_each_schema_of_a_real_broker_has_its_table(
    version: str, shared: Callable[[str], SharedBroker], topic: str, tmp_path: Path
) -> None:
    broker = shared(version)
    broker.broker.create_topic(topic)
    order, payment = _schema("Order", "id", "secret"), _schema("Payment", "paid")
    with EmbeddedSchemaRegistry() as registry:
        ids = {name: register(registry.url, f"{topic}-{name}", own) for name, own in (("o", order), ("p", payment))}
        settings = Settings.model_validate(
            {
                "lake": str(tmp_path / "lake"),
                "clusters": {"main": broker.cluster_settings().model_dump(exclude_defaults=True)},
                "registries": {"main": {"url": registry.url}},
                "topics": {
                    topic: {
                        "format": "avro",
                        "registry": "main",
                        "load": {"drop": ["secret"]},
                        "tables": {"by": "schema", "names": {"shop.Order": "orders", "shop\\.Pay.*": "payments"}},
                    }
                },
                "caps": {"attempts": 8, "request_timeout_s": 10},
            }
        )
        own, orders, payments = (
            lake_table(Lake.of(settings), "main", name) for name in (topic, f"{topic}/orders", f"{topic}/payments")
        )
        values = [_frame(ids["o"], order, id=7, secret=1), _frame(ids["p"], payment, paid=3), None]
        for codec in ("zstd", "none"):
            broker.broker.produce(topic, [(KEY, value) for value in values], codec=codec)
            with open_cluster(settings, "main") as cluster:
                result = Loader.of(settings, cluster, _no_spark).load(topic)
            assert result.error is None, result.error
            assert {load.topic: load.rows for load in result.of_tables} == {
                topic: 1,
                f"{topic}/orders": 1,
                f"{topic}/payments": 1,
            }
        assert _rows(own) == [(2,), (5,)]  # a record without a value has no schema
        assert _rows(orders, "id", "_kafka_schema_id") == [(0, 7, ids["o"]), (3, 7, ids["o"])]
        assert _rows(payments, "paid", "_kafka_schema_id") == [(1, 3, ids["p"]), (4, 3, ids["p"])]
        names = {name for table in (own, orders, payments) for name in DeltaTable(table.uri).schema().to_arrow().names}
        assert "secret" not in names
        assert [table.uri for table in other_tables(own)] == [orders.uri, payments.uri]
        with open_cluster(settings, "main") as cluster:
            for table in (own, orders, payments):
                assert verify_topic(table).problems == ()
                format_ = settings.format_of(str(table.where.topic))
                open_registry = partial(open_schema_registry, settings)
                assert deep_verify(table, cluster, format_=format_, open_registry=open_registry).problems == ()
