"""Brokers with one topic whose messages are known: two brokers of 0.7, and a modern one with variants of its log."""

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from kafka_io.model import BrokerPartition
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.live import live_cluster, numbered
from tests.nodes import empty_registry
from tests.publishing import publish

TOPIC = "clicks"
MESSAGES = numbered(1200)
_KEPT_MESSAGES = 700  # the number of messages in the `truncated` variant
_PARTITIONS = 4
_BATCH = 7
Numbers = Mapping[BrokerPartition, Sequence[int]]
"""The numbers of the messages of each partition, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The settings of running brokers.

    Args:
        cluster: the lines of `[clusters.main]`.
        variants: these lines for other brokers that claim to be the same cluster. `truncated` has only the first
            messages. `altered` has later messages with the same numbers, but with other text.
    """

    name: str
    cluster: str
    variants: Mapping[str, str] = field(default_factory=dict)

    def settings(
        self,
        *,
        capped: bool = False,
        variant: str = "",
        start: str = "earliest",
        slice_records: int = 120,
        value_format: str = "raw",
        request_timeout_s: int = 20,
        spark: Mapping[str, str] | None = None,
    ) -> str:
        """The text of a settings file. A partition has a few slices of a few answers each.

        A `capped` run loads only a part of the topic. `variant` is a key of `variants`, or empty. `value_format` is the
        format of the topic.
        """
        per_run = "bytes_per_run = 16000\nrecords_per_run = 500" if capped else ""
        spark_lines = "\n".join(f'"{key}" = "{value}"' for key, value in (spark or {}).items())
        return f"""start = "{start}"
lake = "lake"
[clusters.main]
{self.variants.get(variant, self.cluster)}
[topics.{TOPIC}]
format = "{value_format}"
[choices]
on_truncated = "rewind"
[caps]
attempts = 2
request_timeout_s = {request_timeout_s}
fetch_bytes = 4096
slice_bytes = 8192
slice_records = {slice_records}
{per_run}
[spark]
{spark_lines}
"""


@contextmanager
def old_world(zookeeper: str, folder: Path) -> Iterator[World]:
    """Start two brokers of 0.7, which are registered in the ZooKeeper at `zookeeper` (`host:port`)."""
    with live_cluster(empty_registry(zookeeper), folder) as cluster:
        cluster.publish(TOPIC, MESSAGES, batch=_BATCH)
        yield World(name="0.7", cluster=f'zookeeper = "{cluster.zookeeper}"')


@contextmanager
def modern_world(folder: Path) -> Iterator[World]:
    """Start a modern broker, and one broker for each other variant of its log."""
    config = ModernBrokerConfig(broker_id=0, data_dir=folder / "current", partitions=_PARTITIONS)
    _fill(config, MESSAGES[:_KEPT_MESSAGES])
    shutil.copytree(folder / "current", folder / "truncated")
    shutil.copytree(folder / "current", folder / "altered")
    configs = {name: replace(config, data_dir=folder / name) for name in ("current", "truncated", "altered")}
    _fill(configs["current"], MESSAGES[_KEPT_MESSAGES:])
    _fill(configs["altered"], [message.replace(b"x", b"y") for message in MESSAGES[_KEPT_MESSAGES:]])
    with ExitStack() as running:
        servers = {name: running.enter_context(ModernBrokerServer(config)) for name, config in configs.items()}
        variants = {name: f'bootstrap = "127.0.0.1:{server.port}"' for name, server in servers.items()}
        yield World(name="modern", cluster=variants["current"], variants=variants)


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
        # Where the value does not decode, its bytes are in `_raw`.
        value = row["_raw"] if row.get("_raw") is not None else row.get("value")
        message = row if value is None else json.loads(value)  # JSON is decoded into columns
        numbers_of[BrokerPartition(row[broker], row[partition])].append(message["number"])
    return numbers_of
