"""Brokers with one topic whose messages are known: two brokers of 0.7, and a modern one with variants of its log.

The modern one has a schema registry, too.
"""

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from kafka_io.model import BrokerPartition
from kafka_io.producer import publishing
from kafka_io.producer.message import Message
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from resources.table_formats import TableFormat
from tests.crash.avro_values import EARLIER, SCHEMAS, avro_value
from tests.live import live_cluster, numbered
from tests.nodes import empty_chroot
from tests.publishing import publish

TOPIC = "clicks"
MESSAGES = numbered(1200)
_PARTITIONS = 4
_BATCH = 7
_DAY_MS = 24 * 60 * 60 * 1000
_AVRO = 'registry = "main"\nmax_bad_share = 1'
Numbers = Mapping[BrokerPartition, Sequence[int]]
"""The numbers of the messages of each partition, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The settings of running brokers.

    Args:
        cluster: the lines of `[clusters.main]`.
        variants: these lines for other brokers that claim to be the same cluster. `truncated` has only the first
            messages. `altered` has later messages with the same numbers, but most of them have other text. The messages
            of `days` have the times of three days. `avro` has messages with the same numbers in Avro, and `avro-1` only
            the first of them, which have the first schema.
        registry: has the schemas of the Avro values.
        table_format: the format of the tables.
    """

    name: str
    cluster: str
    variants: Mapping[str, str] = field(default_factory=dict)
    registry: EmbeddedSchemaRegistry | None = None
    table_format: TableFormat = "delta"

    def settings(
        self,
        *,
        capped: bool = False,
        variant: str = "",
        start: str = "earliest",
        slice_records: int = 120,
        value_format: str = "raw",
        partition_by: str = "loaded",
        columns: str = "",
        lines: str = "",
        request_timeout_s: int = 20,
        spark: Mapping[str, str] | None = None,
    ) -> str:
        """The text of a settings file. A partition has a few slices of a few answers each.

        A `capped` run loads only a part of the topic. `variant` is a key of `variants`, or empty. `value_format` is the
        format of the topic, and `columns` the declared columns of JSON objects. `partition_by` is the setting. `lines`
        are more settings of the topic.
        """
        per_run = "bytes_per_run = 16000\nrecords_per_run = 500" if capped else ""
        format_lines = _AVRO if value_format == "avro" else f"columns = {columns}" if columns else ""
        registry_lines = f'[registries.main]\nurl = "{self.registry.url}"' if self.registry else ""
        spark_lines = "\n".join(f'"{key}" = "{value}"' for key, value in (spark or {}).items())
        return f"""start = "{start}"
lake = "lake"
table_format = "{self.table_format}"
[clusters.main]
{self.variants.get(variant, self.cluster)}
[topics.{TOPIC}]
format = "{value_format}"
partition_by = "{partition_by}"
{format_lines}
{lines}
{registry_lines}
[choices]
on_truncated = "rewind"
[caps]
attempts = 2
registry_wait_s = 0
request_timeout_s = {request_timeout_s}
fetch_bytes = 4096
slice_bytes = 8192
slice_records = {slice_records}
driver_slices = 1
{per_run}
[spark]
{spark_lines}
"""


@contextmanager
def old_world(zookeeper: str, folder: Path) -> Iterator[World]:
    """Start two brokers of 0.7, which are registered in the ZooKeeper at `zookeeper` (`host:port`)."""
    with live_cluster(empty_chroot(zookeeper), folder) as cluster:
        cluster.publish(TOPIC, MESSAGES, batch=_BATCH)
        yield World(name="0.7", cluster=f'zookeeper = "{cluster.zookeeper}"')


@contextmanager
def iceberg_world(folder: Path) -> Iterator[World]:
    """The modern world, whose topics become Iceberg tables."""
    with modern_world(folder) as world:
        yield replace(world, name="iceberg", table_format="iceberg")


@contextmanager
def modern_world(folder: Path) -> Iterator[World]:
    """Start a modern broker, one broker for each other variant of its log, and a schema registry."""
    later = MESSAGES[EARLIER:]
    # With other last messages, or another time of them, it would be another log, which no replay reads (fault A02).
    last = _PARTITIONS * _BATCH
    altered = [*(message.replace(b"x", b"y") for message in later[:-last]), *later[-last:]]
    avro = [avro_value(number) for number in range(len(MESSAGES))]
    configs = {
        **_filled_with_days(
            folder, MESSAGES[:EARLIER], {"current": later, "truncated": (), "altered": altered}, days=1
        ),
        **_filled_with_days(folder, MESSAGES[:EARLIER], {"days": later}, days=3),
        **_filled(folder, avro[:EARLIER], {"avro": avro[EARLIER:], "avro-1": ()}),
    }
    with ExitStack() as running:
        servers = {name: running.enter_context(ModernBrokerServer(config)) for name, config in configs.items()}
        variants = {name: f'bootstrap = "127.0.0.1:{server.port}"' for name, server in servers.items()}
        registry = running.enter_context(EmbeddedSchemaRegistry())
        for schema in SCHEMAS:
            assert registry.register(f"{TOPIC}-value", schema.registered("avro").text) == schema.id
        yield World(name="modern", cluster=variants["current"], variants=variants, registry=registry)


def _filled(
    folder: Path, earlier: Sequence[bytes], later: Mapping[str, Sequence[bytes]]
) -> Mapping[str, ModernBrokerConfig]:
    """Fill the logs of some variants, which begin with the same messages, and continue with those in `later`."""
    configs = {name: ModernBrokerConfig(broker_id=0, data_dir=folder / name, partitions=_PARTITIONS) for name in later}
    first, *others = configs.values()
    _fill(first, earlier)
    for other in others:
        shutil.copytree(first.data_dir, other.data_dir)
    for name, messages in later.items():
        _fill(configs[name], messages)
    return configs


def _filled_with_days(
    folder: Path, earlier: Sequence[bytes], later: Mapping[str, Sequence[bytes]], *, days: int
) -> Mapping[str, ModernBrokerConfig]:
    """The same as `_filled` with messages whose times are of so many days in turn, and the same in all variants."""
    now_ms = int(time.time() * 1000)

    def dated(**fields: Any) -> Message:
        number = json.loads(fields["value"])["number"]
        # Different times take more space, so data files are larger than the log entry, as test_full_disk.py needs it.
        return Message(**fields, timestamp_ms=now_ms - number % days * _DAY_MS - number * 7919 % 1000)

    with patch.object(publishing, "Message", dated):
        return _filled(folder, earlier, later)


def _fill(config: ModernBrokerConfig, messages: Sequence[bytes]) -> None:
    with ModernBrokerServer(config) as server:
        address = f"127.0.0.1:{server.port}"
        sent = publish(TOPIC, messages, bootstrap=address, codecs=("gzip", "none", "zstd"), batch_size=_BATCH)
        assert sent == len(messages)


def numbers(rows: pa.Table) -> Numbers:
    """The numbers of the messages in a table by partition, in the order of their offsets."""
    prefix = "_kafka_" if "_kafka_offset" in rows.column_names else ""
    broker, partition, *_ = order = [f"{prefix}{name}" for name in ("broker", "partition", "offset", "inner")]
    numbers_of: dict[BrokerPartition, list[int]] = defaultdict(list)
    if not rows.num_rows:  # a typed table has no columns for fields before its first rows
        return numbers_of
    for row in rows.sort_by([(name, "ascending") for name in order]).to_pylist():
        # Where the value does not decode, its bytes are in `_raw`. The frame of Avro may precede their JSON text.
        raw = row.get("_raw")
        value = row.get("value") if raw is None else raw[raw.index(b"{") :]
        message = row if value is None else json.loads(value)  # JSON and Avro are decoded into columns
        numbers_of[BrokerPartition(row[broker], row[partition])].append(int(message["number"]))
    return numbers_of
