"""After an erasure no byte of the person is left in what Penstock owns, wherever it was, on disk and in a store.

The person has a marker at every place that a topic can have. The search of this test knows nothing of the certificate:
it decodes files with pyarrow, and undoes the compression of their pages by writing them again uncompressed.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.certificates.certificate import Certificate
from pipelines.certificates.certify import CertificateRequest, certify
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.demo.data import register
from pipelines.fetch.unreadable import QUARANTINE_FOLDER
from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.duckdb_output import DuckDBOutput
from pipelines.increments.increment import Increment, apply_increment
from pipelines.layout.conditions import parse_condition
from pipelines.layout.layout import TableLayout
from pipelines.load.load import Loader
from pipelines.maintenance.clean import clean
from pipelines.maintenance.clean_state import clean_state
from pipelines.maintenance.erase import EraseRequest, erase
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.maintenance.erased_outputs import delete_erased_of_outputs
from pipelines.rewrites.staging import STAGING_FOLDER
from pipelines.state_tables.update import update_state
from pipelines.table.lake_table import DAMAGED
from pipelines.verify.verify import verify
from resources.kafka import open_cluster
from resources.settings.settings import Caps, Settings
from resources.stores.lake import Lake, filesystem, list_folder, write_file
from tests.brokers.producing import Record
from tests.brokers.shared import SharedBroker
from tests.fakes.object_store import object_store

pytestmark = [pytest.mark.brokers]

MARKER, OTHER = "zelda@private.example", "other@shop.example"
CLUSTER = "main"
BESIDE = (DAMAGED, f"{STAGING_FOLDER}/convert-1")
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "email", "type": "string"}, {"name": "notes", "type": {"type": "array", "items": "string"}}],
}


def json_value(email: str) -> bytes:
    return json.dumps({"email": email, "notes": [f"for {email}"], "by": {email: 1}}).encode()


def broken_json(email: str) -> bytes:
    return b'{"email": "%s", "email": 1' % email.encode()


@dataclass(kw_only=True)
class World:
    """A topic on a real broker, its table in a lake, and a consumer with two outputs."""

    broker: SharedBroker
    topic: str
    folder: Path
    lake: Lake
    format_: Mapping[str, Any] = field(default_factory=dict)
    registries: Mapping[str, Any] = field(default_factory=dict)
    value: Callable[[str], bytes] = json_value
    broken: Callable[[str], bytes] = broken_json
    where: str = f"email = '{MARKER}'"

    @property
    def settings(self) -> Settings:
        """The settings, as in a file."""
        return Settings.model_validate(
            {
                "lake": self.lake.root,
                "lake_options": dict(self.lake.options),
                "clusters": {CLUSTER: self.broker.cluster_settings().model_dump(exclude_defaults=True)},
                "registries": self.registries,
                "topics": {self.topic: self.format_} if self.format_ else {},
                "choices": {"on_corrupt": "skip"},
                "caps": Caps(attempts=8, request_timeout_s=10),
            }
        )

    @property
    def table(self) -> DeltaLakeTable:
        """The topic's table."""
        return DeltaLakeTable.of(self.lake, CLUSTER, self.topic, TableLayout(is_typed=bool(self.format_)))

    @property
    def has_state(self) -> bool:
        """Whether the topic has a state table."""
        return "state" in self.format_

    @property
    def has_bounds(self) -> bool:
        """Whether the log has bounds of the person before the erasure."""
        return bool(self.format_) and "personal" not in self.format_

    @property
    def delta(self) -> DeltaOutput:
        """The output of the consumer `delta`, beside the table."""
        return DeltaOutput(uri=f"{self.lake.root}/out/{self.topic}", options=self.lake.options)

    @property
    def duckdb(self) -> DuckDBOutput:
        """The output of the consumer `duckdb`, on the disk."""
        return DuckDBOutput(path=self.folder / "out.duckdb", table="rows")

    def publish(
        self, records: list[Record], headers: list[tuple[str, bytes]] | None = None, codec: str = "zstd"
    ) -> None:
        """Send records, each with these headers, in one batch."""
        details = [{"headers": headers or []} for _ in records]
        self.broker.broker.produce(self.topic, records, codec=codec, details=details)

    def load(self) -> None:
        """Load the new records, in this process."""
        with open_cluster(self.settings, CLUSTER) as cluster:
            result = Loader.of(self.settings, cluster, _no_spark).load(self.topic)
        assert result.error is None, result.error

    def follow(self) -> None:
        """Bring the state table and both outputs up to date."""
        if self.has_state:
            update_state(self.table, self.settings.options_of(self.topic))
        for name, output in (("delta", self.delta), ("duckdb", self.duckdb)):
            apply_increment(self.table, _rows, consumer=name, into=output)

    def fill(self) -> None:
        """Several loads with the person at every place, a compaction, checkpoints, and copies beside the table.

        One load leaves a corrupt batch out, and keeps its bytes.
        """
        key, other = MARKER.encode(), OTHER.encode()
        self.publish([(other, self.value(OTHER)), (key, self.value(MARKER))])
        self.load()
        self.publish([(other, self.value(MARKER)), (key, self.value(OTHER)), (other, self.value(OTHER))])
        self.publish([(other, self.value(OTHER))], headers=[("for", key)])
        self.publish([(key, self.value(MARKER))], codec="none")
        self.broker.broker.damage(self.topic)
        self.load()
        self.follow()
        self.publish([(other, self.broken(MARKER)), (other, self.broken(OTHER)), (key, None)])
        self.load()
        self.follow()
        clean(self.table, keep=timedelta(days=1), target_bytes=1 << 20, dry_run=False)
        if self.has_state:
            clean_state(self.table, keep=timedelta(days=1), target_bytes=1 << 20, dry_run=False)
        files = filesystem(self.table.uri, self.lake.options)
        for name in BESIDE:
            write_file(files, f"{name}/copy", key)

    def erase(self) -> int:
        """Erase the person; returns the number of rows."""
        condition = parse_condition(self.where)
        result = erase(EraseRequest(table=self.table, condition=condition, also_raw=True, run="run", name="T-1"))
        assert result.failure is None
        return result.rows

    def finish(self) -> None:
        """Delete what the erasure took out, without waiting."""
        finish_erasures(self.table, older_than=timedelta(), dry_run=False)

    def clean_outputs(self) -> None:
        """Delete what the erasure took out of Delta outputs, too."""
        erased, *_ = finish_erasures(self.table, older_than=timedelta(), dry_run=False)
        [result] = delete_erased_of_outputs(self.table, erased, dry_run=False)
        assert (result.unsupported, len(result.deleted) > 0) == ("", True)

    def certificate(self) -> Certificate:
        """The certificate of the erasure, with the values."""
        condition = parse_condition(self.where)
        with open_cluster(self.settings, CLUSTER) as cluster:
            return certify(
                CertificateRequest(table=self.table, request="T-1", condition=condition, erase_days=7, cluster=cluster)
            )

    def left(self) -> list[str]:
        """The objects of Penstock that have the marker. Outputs belong to their owner."""
        files = filesystem(self.lake.root, self.lake.options)
        infos = [info for info in list_folder(files, "", recursive=True) if info.is_file]
        own = [info.path for info in infos if not info.path.startswith("out/")]
        assert any("_delta_log/" in path for path in own)
        return sorted(path for path in own if _has(files.open_input_file(path).read(), path))

    def rows_with_marker(self) -> dict[str, int]:
        """The number of rows with the marker in the table and in both outputs, as readers see them."""
        tables = {"table": self.table.uri, "delta": self.delta.uri}
        counts = {}
        for name, uri in tables.items():
            rows = DeltaTable(uri, storage_options=dict(self.lake.options)).to_pyarrow_table().to_pylist()
            counts[name] = sum(MARKER in str(row) for row in rows)
        with duckdb.connect(self.duckdb.path) as connection:
            rows_of_file = connection.execute("from rows").fetchall()
        counts["duckdb"] = sum(MARKER in str(row) for row in rows_of_file)
        return counts


def _no_spark() -> NoReturn:
    pytest.fail("a small load needs no Spark")


def _rows(increment: Increment) -> Any:
    return increment.arrow()


def _has(content: bytes, path: str) -> bool:
    marker = MARKER.encode()
    if marker in content or marker.decode() in path:
        return True
    if not path.endswith(".parquet"):
        return False
    # The pages of a file that is written again have its values; those of an unused dictionary are read as such.
    opened = pq.ParquetFile(io.BytesIO(content))
    texts = [
        name for name, kind in zip(opened.schema_arrow.names, opened.schema_arrow.types, strict=True) if _is_text(kind)
    ]
    as_dictionaries = pq.read_table(io.BytesIO(content), read_dictionary=texts)
    dictionaries = [chunk.dictionary.to_pylist() for name in texts for chunk in as_dictionaries.column(name).chunks]
    return MARKER in str(dictionaries) or MARKER in str(opened.read().to_pylist())


def _is_text(kind: Any) -> bool:
    return str(kind) in {"string", "binary", "large_string", "large_binary"}


def _avro_frame(schema_id: int, email: str) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, AVRO, {"email": email, "notes": [f"for {email}"]})
    return b"\0" + schema_id.to_bytes(4, "big") + sink.getvalue()


@pytest.fixture
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as running:
        yield running


@pytest.fixture
def world(
    request: pytest.FixtureRequest,
    shared: Callable[[str], SharedBroker],
    registry: EmbeddedSchemaRegistry,
    topic: str,
    tmp_path: Path,
) -> Iterator[World]:
    format_name, store_name = request.param
    broker = shared("3.9.1")
    broker.broker.create_topic(topic)
    with ExitStack() as stack:
        lake = Lake(root=str(tmp_path / "lake"))
        if store_name == "store":
            store = stack.enter_context(object_store())
            lake = Lake(root=store.root, options=store.options)
        world = World(broker=broker, topic=topic, folder=tmp_path, lake=lake)
        if format_name == "json":
            personal = ["email", "notes", "by", "_kafka_key"]
            world.format_ = {"format": "json", "key_format": "text", "personal": personal, "max_bad_share": 1}
        elif format_name == "json with a state table":
            state = {"key": ["_kafka_key_value"]}
            world.format_ = {"format": "json", "key_format": "text", "state": state, "max_bad_share": 1}
            world.value = lambda email: json.dumps({"email": email, "size": len(email)}).encode()
        elif format_name == "avro":
            schema_id = register(registry.url, f"{topic}-value", AVRO)
            world.registries = {"main": {"url": registry.url}}
            world.format_ = {"format": "avro", "registry": "main", "max_bad_share": 1}
            world.value = lambda email: _avro_frame(schema_id, email)
            world.broken = lambda email: _avro_frame(schema_id, email)[:-1]
        else:
            world.where = f"key = '{MARKER}'"
        yield world


FORMATS = ("json", "json with a state table", "avro", "raw")
STORES = ("disk", "store")
WORLDS = [
    # `make test` has each format, half of them in an object store.
    pytest.param((format_, store), marks=() if number % 2 == STORES.index(store) else pytest.mark.thorough)
    for number, format_ in enumerate(FORMATS)
    for store in STORES
]


@pytest.mark.parametrize("world", WORLDS, indirect=True, ids=lambda names: "-3.9.1-".join(names).replace(" ", "_"))
def test_no_byte_of_an_erased_person_is_left(world: World) -> None:  # faults Y01, Y02, Y03, Y04, Y09, Y13
    world.fill()
    before = world.left()
    for place in (".parquet", QUARANTINE_FOLDER, *BESIDE):
        assert any(place in path for path in before), place
    # Bounds of personal columns were never in the log, and columns of bytes have none.
    for place in ("_delta_log/0", ".checkpoint.parquet"):
        assert any(place in path for path in before) == world.has_bounds, place
    assert any(path.startswith("_state/") for path in before) == world.has_state
    rows = world.rows_with_marker()
    assert set(rows.values()) == {rows["table"]}
    assert world.erase() == rows["table"] > 4
    assert not world.certificate().complete
    world.follow()
    assert set(world.rows_with_marker().values()) == {0}
    world.finish()
    assert world.left() == []
    certificate = world.certificate()
    assert certificate.complete, certificate.tasks
    assert [consumer.consumer for consumer in certificate.consumers] == ["delta", "duckdb"]
    delta, duckdb_file = certificate.consumers
    assert delta.scan is not None
    assert delta.scan.hits  # its owner has not asked for more
    world.clean_outputs()
    assert [consumer.scan.hits for consumer in world.certificate().consumers if consumer.scan] == [()]
    assert "COPY FROM DATABASE" in duckdb_file.clean_up
    assert "1 partition may have the records" in certificate.elsewhere[0].says
    assert verify(world.table).proven
    world.publish([(OTHER.encode(), world.value(OTHER))])
    world.load()
    world.follow()
    assert verify(world.table).proven
    assert world.left() == []
