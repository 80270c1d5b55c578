"""A real Kafka broker in its own JVM, for tests and the bench. It listens on free ports of the loopback address."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from kafka_io.records.layout import BATCH_CRC_AT, ENTRY_BYTES, ENTRY_LENGTH_AT
from tests.brokers import metadata
from tests.brokers.kafka_process import KafkaProcess
from tests.brokers.kraft_mode import KRaftMode, Quorum
from tests.brokers.metadata import Metadata
from tests.brokers.ports import HOST, free_ports
from tests.brokers.producing import Record, produce
from tests.brokers.properties import Listener, common_settings
from tests.brokers.releases import RELEASES
from tests.brokers.zookeeper_mode import ZooKeeperMode

VERSIONS: tuple[str, ...] = tuple(RELEASES)
_START_S = 60.0
_POLL_S = 0.05


class BrokerNotStarted(RuntimeError):
    """The broker ended, or did not answer in time. The message has the end of its log."""


class Mode(Protocol):
    """How a broker runs: in ZooKeeper mode or in KRaft mode."""

    @property
    def config(self) -> Mapping[str, str]:
        """The broker's settings for this mode."""

    @property
    def listeners(self) -> list[Listener]:
        """The listeners that the broker needs for itself."""

    def prepare(self, settings: Path, log: IO[bytes]) -> None:
        """Do what must be done before the broker starts. Output goes to `log`."""

    def serves(self, answer: Metadata) -> bool:
        """Whether the broker that answered with this metadata is ready for clients."""

    def create_topic(self, name: str, replicas: Sequence[Sequence[int]], config: Mapping[str, str]) -> None:
        """Request a new topic. `replicas` lists the brokers of each partition, the preferred leader first."""

    def delete_topic(self, name: str) -> None:
        """Request the deletion of a topic."""


class RealBroker:
    """A broker with its data in `folder`, which remains after a stop or a kill. A context manager.

    On Linux the kernel kills the broker when the thread that started it ends, so that thread must run as long.
    """

    def __init__(
        self,
        version: str,
        folder: Path,
        *,
        zookeeper: str | None = None,
        broker_id: int = 1,
        config: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        heap: str = "512m",
        options: tuple[str, ...] = (),
        joins: Quorum | None = None,
    ) -> None:
        """A broker that is not started yet. It runs in ZooKeeper mode if `zookeeper` is given, otherwise in KRaft mode.

        Args:
            version: a key of RELEASES.
            folder: for the data, the settings file and the log. It is created if it is missing.
            zookeeper: `host:port/chroot`. Brokers with the same chroot are a cluster.
            broker_id: the id of the broker in its cluster.
            config: settings that override the common ones.
            listeners: further listeners, each name with its security protocol. `ports` has their ports.
            users: names and passwords of the users that can log in with SCRAM. KRaft mode only.
            heap: the maximum size of the Java heap.
            options: further options for Java.
            joins: the controllers of the cluster that this broker joins. Without them it is a controller itself. KRaft
                mode only.
        """
        self.version = version
        self._release = RELEASES[version]
        self.host = HOST
        self._process = KafkaProcess(version, folder.resolve(), options=(f"-Xmx{heap}", *options))
        self._id = broker_id
        protocols = {"PLAINTEXT": "PLAINTEXT", **(listeners or {})}
        self.port, controller_port, *further = free_ports(1 + len(protocols))
        self.ports: Mapping[str, int] = dict(zip(protocols, (self.port, *further), strict=True))
        self._mode: Mode
        if zookeeper:
            self._mode = ZooKeeperMode(zookeeper, broker_id, lists_itself=self._release.lists_itself)
        else:
            self._mode = KRaftMode(
                version,
                self.bootstrap,
                node_id=broker_id,
                controller_port=controller_port,
                users=users or {},
                joins=joins,
            )
        offered = [Listener(name=name, protocol=protocols[name], port=port) for name, port in self.ports.items()]
        common = common_settings(str(self._process.data), self.port, [*offered, *self._mode.listeners])
        self._config = {**common, **self._mode.config, **(config or {})}

    @property
    def bootstrap(self) -> str:
        """The address for clients: `host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def quorum(self) -> Quorum:
        """The controllers of the broker's cluster, for brokers that join it. KRaft mode only."""
        assert isinstance(self._mode, KRaftMode), "this broker runs in ZooKeeper mode; join it by `zookeeper`"
        return self._mode.quorum

    @property
    def log(self) -> Path:
        """The file with the output of the broker since its first start."""
        return self._process.log

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        return self._process.pid

    def start(self) -> Self:
        """Start the broker, and wait until it answers and its cluster knows it.

        Raises:
            BrokerNotStarted: the broker ended, or did not answer in time.
            JarsNotFound: the jars could not be downloaded.
        """
        try:
            self._process.start_with(self._config, self._mode.prepare)
        except (subprocess.SubprocessError, TimeoutError) as error:
            raise BrokerNotStarted(f"Kafka {self.version}: {error}. {self._process.log_end()}") from error
        try:
            self._wait(self._mode.serves, "did not answer")
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker, and kill it if it does not end. A second call does nothing."""
        self._process.stop()

    def kill(self) -> None:
        """Kill the broker. It can be started again."""
        self._process.kill()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        *,
        replicas: Sequence[Sequence[int]] = (),
    ) -> None:
        """Create a topic, and wait until each partition has a leader.

        `replicas` lists the brokers of each partition, the preferred leader first. By default this broker has all
        partitions.
        """
        assignment = replicas or [[self._id]] * partitions
        self._mode.create_topic(name, assignment, config or {})
        self._wait(lambda answer: answer.count_led(name) == len(assignment), f"did not create {name}")

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is no longer listed."""
        self._mode.delete_topic(name)
        self._wait(lambda answer: name not in answer.topics(), f"did not delete {name}")

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int = 0,
        codec: str = "none",
        details: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write records, each a key and a value, with a stock producer, in the newest format of the broker version.

        The producer sends a batch uncompressed if `codec` does not make it smaller. `details` has `timestamp` and
        `headers` of each record.

        Raises:
            KafkaException: the broker refused a record, or did not answer in time.
            ValueError: brokers of this version do not know the codec.
        """
        if codec not in self._release.codecs:  # the producer would silently send the records uncompressed
            raise ValueError(f"Kafka {self.version} does not know {codec}")
        client = {"bootstrap.servers": self.bootstrap, "compression.type": codec, **self._release.librdkafka}
        produce(client, topic, partition, records, details or [{}] * len(records))

    def damage(self, topic: str) -> None:
        """Flip a bit of a checksum on the disk: in the newest batch of partition 0. The broker does not check it."""
        segment = max((self._process.data / f"{topic}-0").glob("*.log"))
        content, position = segment.read_bytes(), 0
        while (following := position + _batch_size(content, position)) < len(content):
            position = following
        with segment.open("r+b") as file:
            file.seek(position + BATCH_CRC_AT)
            file.write(bytes([content[position + BATCH_CRC_AT] ^ 1]))

    def _wait(self, is_reached: Callable[[Metadata], bool], failure: str) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if not self._process.runs:
                raise BrokerNotStarted(f"Kafka {self.version} ended. {self._process.log_end()}")
            try:
                if is_reached(metadata.request_metadata(self.host, self.port)):
                    return
            except OSError:  # it does not listen yet
                pass
            time.sleep(_POLL_S)
        raise BrokerNotStarted(f"Kafka {self.version} {failure} within {_START_S:g} s. {self._process.log_end()}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _batch_size(content: bytes, position: int) -> int:
    length_at = position + ENTRY_LENGTH_AT
    return ENTRY_BYTES + int.from_bytes(content[length_at : length_at + 4], "big")
