"""A small cluster: two embedded 0.7 brokers in this process that register in a real ZooKeeper."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka_io.cluster.v07_cluster import Cluster07
from kafka_io.reader.reader import ReadSettings
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.publishing import publish

PARTITIONS = 2
CODECS = ("gzip", "none", "snappy")


@dataclass(slots=True)
class LiveCluster:
    """The cluster `main`, and a settings file for it."""

    zookeeper: str
    home: Path
    brokers: list[BrokerServer07]

    @property
    def lake(self) -> Path:
        """The lake's root."""
        return self.home / "lake"

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.home / "penstock.toml"

    def configure(
        self, extra: str = "", *, spark: str = "", slice_bytes: int = 16384, request_timeout_s: int = 5
    ) -> Path:
        """Write the settings file. It begins with `extra`, and `spark` is in the section [spark]."""
        self.settings.write_text(
            f"""{extra}
lake = "lake"
[clusters.main]
zookeeper = "{self.zookeeper}"
[caps]
attempts = 2
slice_bytes = {slice_bytes}
driver_slices = 1
request_timeout_s = {request_timeout_s}
[spark]
master = "local[2,2]"
"spark.ui.enabled" = false
{spark}
"""
        )
        return self.settings

    def open(self) -> Cluster07:
        """A client of the cluster."""
        return Cluster07("main", ZooKeeper.open(self.zookeeper), read_settings=ReadSettings())

    def publish(self, topic: str, messages: Sequence[bytes], *, codecs: Sequence[str] = CODECS, batch: int = 7) -> None:
        """Publish messages. They can be read at once, because the brokers flush after each request."""
        sent = publish(topic, messages, zookeeper=self.zookeeper, codecs=codecs, batch_size=batch)
        assert sent == len(messages)


@contextmanager
def live_cluster(zookeeper: str, home: Path, *, brokers: int = 2, segment_bytes: int = 4096) -> Iterator[LiveCluster]:
    """Run a cluster for the length of a `with` block."""
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        servers = [
            running.enter_context(
                BrokerServer07(
                    BrokerConfig07(
                        broker_id=number,
                        data_dir=home / f"broker-{number}",
                        partitions=PARTITIONS,
                        segment_bytes=segment_bytes,
                    ),
                    zookeeper=zookeeper,
                )
            )
            for number in range(brokers)
        ]
        cluster = LiveCluster(zookeeper=zookeeper, home=home, brokers=servers)
        cluster.configure()
        yield cluster


def numbered(count: int, start: int = 0) -> list[bytes]:
    """Messages with increasing numbers."""
    return [
        b'{"number": %d, "padding": "%s"}' % (number, b"x" * (number % 50)) for number in range(start, start + count)
    ]
