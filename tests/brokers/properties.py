"""The file `server.properties` of a broker. Most settings are the same for all versions."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.brokers.ports import HOST

# A broker ignores unknown settings, so these are the same for all versions.
_COMMON = {
    "num.partitions": "1",
    "delete.topic.enable": "true",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.hours": "1000000",  # records of tests may be old
    "log.cleaner.dedupe.buffer.size": "2097152",
    "controlled.shutdown.enable": "false",  # there is no other broker
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listener of a broker: its name, its security protocol and its port."""

    name: str
    protocol: str
    port: int


def common_settings(log_dir: str, port: int, listeners: list[Listener]) -> Mapping[str, str]:
    """The settings that brokers of both modes need. `port` is the port for clients."""
    # A broker that is not the controller must know the protocol of the controller.
    protocols = {"CONTROLLER": "PLAINTEXT", **{listener.name: listener.protocol for listener in listeners}}
    return {
        **_COMMON,
        "log.dirs": log_dir,
        "host.name": HOST,  # this and `port` are for 0.8, which does not know `listeners`
        "port": str(port),
        "listeners": ",".join(f"{listener.name}://{HOST}:{listener.port}" for listener in listeners),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
    }


def text(settings: Mapping[str, str]) -> str:
    """The text of the file. Backslashes are doubled, because Java reads a single one as an escape."""
    return "".join(f"{name}={value}\n" for name, value in settings.items()).replace("\\", "\\\\")
