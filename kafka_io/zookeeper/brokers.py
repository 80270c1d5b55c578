"""The brokers of a cluster, in either of the two formats of nodes."""

from collections.abc import Iterable, Iterator

from kafka_io.errors import RegistryError
from kafka_io.model import Broker
from kafka_io.zookeeper.listing import Listing, Skip, collect, ignore, names_under, present, skipping
from kafka_io.zookeeper.modern import PLAINTEXT, Endpoint, parse_endpoints
from kafka_io.zookeeper.node_format import FormatEvidence, NodeFormat
from kafka_io.zookeeper.node_values import looks_like_json
from kafka_io.zookeeper.paths import BROKER_IDS, broker_path, parse_broker_07
from kafka_io.zookeeper.session import ZooKeeperQueries


def list_brokers(queries: ZooKeeperQueries, protocol: str = PLAINTEXT) -> Listing[Broker]:
    """All brokers sorted by id, each at its first endpoint for `protocol`; a broker without one is skipped."""

    def read(skip: Skip) -> Iterator[Broker]:
        for endpoints in list_endpoints(queries, skip):
            broker = next((endpoint.broker for endpoint in endpoints if endpoint.protocol == protocol), None)
            if broker is not None:
                yield broker
            else:
                listeners = ", ".join(f"{endpoint.listener} ({endpoint.protocol})" for endpoint in endpoints)
                reason = f"the broker has no listener for {protocol}: it has {listeners}"
                skip(broker_path(endpoints[0].broker.id), RegistryError(reason))

    queries.sync()
    return collect(read)


def evidence_of_brokers(queries: ZooKeeperQueries) -> FormatEvidence:
    """What the running brokers show about the format of the nodes; empty without a running broker."""
    evidence = FormatEvidence()
    for _ in _read_brokers(queries, queries.children(BROKER_IDS), evidence, ignore):
        pass
    return evidence


def list_endpoints(queries: ZooKeeperQueries, skip: Skip) -> list[tuple[Endpoint, ...]]:
    """The endpoints of each registered broker, sorted by the broker's id."""
    brokers = _read_brokers(queries, names_under(queries, BROKER_IDS), FormatEvidence(), skip)
    return sorted(brokers, key=lambda endpoints: endpoints[0].broker.id)


def _read_brokers(
    queries: ZooKeeperQueries, names: Iterable[str], evidence: FormatEvidence, skip: Skip
) -> Iterator[tuple[Endpoint, ...]]:
    for path, content in queries.contents(f"{BROKER_IDS}/{name}" for name in names):
        with skipping(path, skip):
            value = present(content).value
            if looks_like_json(value):
                evidence.add(NodeFormat.JSON, path)
                yield parse_endpoints(path, value)
            else:
                broker = parse_broker_07(path, value)
                evidence.add(NodeFormat.V07, path)
                yield (Endpoint(PLAINTEXT, PLAINTEXT, broker),)
