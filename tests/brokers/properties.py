"""The settings file of a broker, the same for all versions as far as can be."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.brokers.ports import HOST

# A broker passes over what it does not know, so all are told the same.
_EVERYONES = {
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
    "controlled.shutdown.enable": "false",  # nobody takes over
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One port of a broker."""

    name: str
    protocol: str
    port: int


def everyones(log_dir: str, port: int, listeners: list[Listener]) -> Mapping[str, str]:
    """What every broker is told; `port` is that of its clients."""
    # A broker that is no controller must know how to speak to one.
    protocols = {"CONTROLLER": "PLAINTEXT", **{listener.name: listener.protocol for listener in listeners}}
    return {
        **_EVERYONES,
        "log.dirs": log_dir,
        "host.name": HOST,  # these two for 0.8, which knows no listeners
        "port": str(port),
        "listeners": ",".join(f"{listener.name}://{HOST}:{listener.port}" for listener in listeners),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
    }


def text(settings: Mapping[str, str]) -> str:
    """The file. Java reads a backslash in it as an escape."""
    return "".join(f"{name}={value}\n" for name, value in settings.items()).replace("\\", "\\\\")
