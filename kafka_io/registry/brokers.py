"""The brokers of a registry, in either of its two formats."""

from collections.abc import Iterable, Iterator

from kafka_io.model import Broker
from kafka_io.registry.dialect import FormatEvidence, RegistryFormat
from kafka_io.registry.endpoints import RegisteredBroker, choose_endpoint, plaintext_endpoint
from kafka_io.registry.json_text import looks_like_json
from kafka_io.registry.listing import Listing, Skip, collect, ignore, names_under, present, skipping
from kafka_io.registry.modern import parse_broker
from kafka_io.registry.paths import BROKER_IDS, broker_path, parse_broker_07
from kafka_io.registry.session import ZooKeeperQueries


def list_brokers(queries: ZooKeeperQueries, protocol: str) -> Listing[Broker]:
    """All brokers that have an endpoint for `protocol`, sorted by id."""

    def read(skip: Skip) -> Iterator[Broker]:
        for broker in brokers_in_order(queries, skip):
            with skipping(broker_path(broker.id), skip):
                yield choose_endpoint(broker, protocol)

    queries.sync()
    return collect(read)


def evidence_of_brokers(queries: ZooKeeperQueries) -> FormatEvidence:
    """What the running brokers show about the format of the registry; empty without a running broker."""
    evidence = FormatEvidence()
    node = queries.node(BROKER_IDS)
    for _ in _read_brokers(queries, node.children if node else (), evidence, ignore):
        pass
    return evidence


def brokers_in_order(queries: ZooKeeperQueries, skip: Skip) -> list[RegisteredBroker]:
    """All registered brokers with all their endpoints, by id."""
    brokers = _read_brokers(queries, names_under(queries, BROKER_IDS), FormatEvidence(), skip)
    return sorted(brokers, key=lambda broker: broker.id)


def _read_brokers(
    queries: ZooKeeperQueries, names: Iterable[str], evidence: FormatEvidence, skip: Skip
) -> Iterator[RegisteredBroker]:
    for path, content in queries.contents(f"{BROKER_IDS}/{name}" for name in names):
        with skipping(path, skip):
            yield _parse(path, present(content).value, evidence)


def _parse(path: str, value: bytes, evidence: FormatEvidence) -> RegisteredBroker:
    if looks_like_json(value):
        evidence.add(RegistryFormat.JSON, path)
        return parse_broker(path, value)
    broker = parse_broker_07(path, value)
    evidence.add(RegistryFormat.V07, path)
    return RegisteredBroker(id=broker.id, endpoints=(plaintext_endpoint(broker.host, broker.port),), version=0)
