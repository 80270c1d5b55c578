"""The brokers of a registry, whichever dialect it is written in."""

from collections.abc import Iterable, Iterator

from kafka_io.model import Broker
from kafka_io.registry.dialect import Dialect, Evidence
from kafka_io.registry.endpoints import RegisteredBroker, choose_endpoint, plaintext_endpoint
from kafka_io.registry.json_text import looks_like_json
from kafka_io.registry.listing import Listing, Skip, collect, let_by, names_under, present, skipping
from kafka_io.registry.modern import parse_broker
from kafka_io.registry.paths import BROKER_IDS, broker_path, parse_broker_07
from kafka_io.registry.session import Asking


def list_brokers(asking: Asking, protocol: str) -> Listing[Broker]:
    """All brokers that have an endpoint for `protocol`, by id."""

    def read(skip: Skip) -> Iterator[Broker]:
        for broker in _in_order(asking, skip):
            with skipping(broker_path(broker.id), skip):
                yield choose_endpoint(broker, protocol)

    asking.sync()
    return collect(read)


def list_registered_brokers(asking: Asking) -> Listing[RegisteredBroker]:
    """All brokers with all their endpoints, by id."""
    asking.sync()
    return collect(lambda skip: _in_order(asking, skip))


def evidence_of_brokers(asking: Asking) -> Evidence:
    """What the brokers that are up tell of the registry's dialect; nothing when none is."""
    evidence = Evidence()
    node = asking.node(BROKER_IDS)
    for _ in _read_brokers(asking, node.children if node else (), evidence, let_by):
        pass
    return evidence


def _in_order(asking: Asking, skip: Skip) -> list[RegisteredBroker]:
    brokers = _read_brokers(asking, names_under(asking, BROKER_IDS), Evidence(), skip)
    return sorted(brokers, key=lambda broker: broker.id)


def _read_brokers(asking: Asking, names: Iterable[str], evidence: Evidence, skip: Skip) -> Iterator[RegisteredBroker]:
    for path, content in asking.contents(f"{BROKER_IDS}/{name}" for name in names):
        with skipping(path, skip):
            yield _parse(path, present(content).value, evidence)


def _parse(path: str, value: bytes, evidence: Evidence) -> RegisteredBroker:
    if looks_like_json(value):
        evidence.add(Dialect.JSON, path)
        return parse_broker(path, value)
    broker = parse_broker_07(path, value)
    evidence.add(Dialect.V07, path)
    return RegisteredBroker(id=broker.id, endpoints=(plaintext_endpoint(broker.host, broker.port),), version=0)
