"""The world of an incident: a broker with the topic `clicks`, a lake with its table, a settings file, and a fault."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from click.testing import CliRunner, Result

from kafka_io.producer.message import Message
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from resources.kafka import open_producer
from resources.settings.settings import Settings
from tests.kafka_io.testing.modern.talk import Client
from tests.pipelines.cli.walking import words_of

TOPIC = "clicks"
_TIMEOUT_S = 300.0
"""On a machine that is busy with other tests, a broker can take this long to answer."""


@dataclass(slots=True, kw_only=True)
class IncidentWorld:
    """A broker that a test can stop and whose log it can damage, and the folder of the settings and the lake.

    Attributes:
        settings: the content of the settings file.
        broker_options: what the configuration of the broker has besides its defaults.
    """

    home: Path
    settings: dict[str, Any] = field(default_factory=dict)
    broker_options: dict[str, Any] = field(default_factory=dict)
    _broker: ModernBrokerServer = field(init=False)
    _faults: list[ExitStack] = field(default_factory=list)
    _servers: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self._start()
        with self.client() as client:
            assert client.create(TOPIC) == 0
        self.configure(
            {
                "lake": str(self.home / "lake"),
                "clusters": {"main": {"bootstrap": f"127.0.0.1:{self._broker.port}"}},
                "caps": {"attempts": 1, "request_timeout_s": _TIMEOUT_S},
            }
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._servers:
            while self._faults:
                self._faults.pop().close()
        self._broker.stop()

    @property
    def table(self) -> Path:
        """The folder of the table."""
        return self.home / "lake" / "main" / TOPIC

    @property
    def log_file(self) -> Path:
        """The newest segment of the log of the topic, on the disk of the broker."""
        return max((self.home / "broker" / f"{TOPIC}-0").glob("*.log"))

    @property
    def has_fault(self) -> bool:
        """Whether something is broken that only an operator can repair."""
        return bool(self._faults)

    def begin_fault(self, *faults: AbstractContextManager[object], repair: Callable[[], object] = lambda: None) -> None:
        """Break something. The end of the context managers, and then `repair`, make it whole again."""
        self._faults.append(ExitStack())
        self._faults[-1].callback(repair)
        for fault in faults:
            self._faults[-1].enter_context(fault)

    def end_fault(self) -> None:
        """Do what a step asks the operator to do."""
        self._faults.pop().close()

    def run(self, server: AbstractContextManager[Any]) -> Any:
        """Run another server until the test ends. Returns the value of its `with` statement."""
        return self._servers.enter_context(server)

    def _start(self, port: int = 0) -> None:
        config = ModernBrokerConfig(broker_id=0, data_dir=self.home / "broker", port=port, **self.broker_options)
        self._broker = ModernBrokerServer(config)
        self._broker.start()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the broker for the length of the `with` block. It starts again at the same address."""
        port = self._broker.port
        self._broker.stop()
        try:
            yield
        finally:
            self._start(port)

    def restart(self, **options: Any) -> None:
        """Restart the broker with other options."""
        with self.stopped():
            self.broker_options = options

    def client(self) -> Client:
        """A connection to the broker."""
        client = Client(self._broker.port)
        client.socket.settimeout(_TIMEOUT_S)
        return client

    def publish(self, values: list[bytes], *, age_s: float | None = None, compression: str = "none") -> None:
        """Publish values in one batch, with timestamps that are so old, or those of the producer."""
        written_ms = None if age_s is None else int((time.time() - age_s) * 1000)
        messages = [Message(topic=TOPIC, value=value, timestamp_ms=written_ms) for value in values]
        settings = Settings.load(self.home / "penstock.toml")
        with open_producer(settings, "main", compression=compression) as producer:
            producer.send_many(messages)

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change the settings file. Sections are merged, other values are replaced."""
        _merge(self.settings, changes)
        (self.home / "penstock.toml").write_text(_toml_of(self.settings))

    def load(self) -> None:
        """Load the topic, which must succeed."""
        result = self.penstock(f"penstock load {TOPIC}")
        assert result.exit_code == 0, result.output

    def penstock(self, command: str) -> Result:
        """Run a command of Penstock, and confirm what it asks."""
        return CliRunner().invoke(main, words_of(command), input="y\n")


def _merge(into: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _toml_of(settings: Mapping[str, Any], place: str = "") -> str:
    """Settings as TOML. Keys are names, and values are text, numbers and lists, which TOML writes like JSON."""
    sections = {key: value for key, value in settings.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if key not in sections]
    parts = [_toml_of(section, f"{place}.{key}".lstrip(".")) for key, section in sections.items()]
    return "\n".join([*([f"[{place}]"] if place else ()), *lines, *parts])
