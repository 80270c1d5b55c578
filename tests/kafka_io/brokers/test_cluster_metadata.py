"""Who leads what: asked of any broker that answers, and asked again when it is told to be wrong."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers.cluster_metadata import Leader, topic_id_text
from kafka_io.errors import BrokerError, ConnectFailed, LeaderMoved
from kafka_io.messages.metadata import MetadataBroker, MetadataRequest, MetadataResponse, MetadataTopic
from kafka_io.model import Generation
from tests.fakes.cluster import EVERYTHING, FakeCluster, Log
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

METADATA = MetadataRequest.API.key
EMPTY = Log(entries=[], end=0)


def led_by(leader: Leader) -> int:
    return leader.connection.broker.id


def test_a_topic_is_asked_for_once_and_anew_when_it_was_forgotten(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY, 1: Log(entries=[], end=0, leader=1, epoch=9)}) as cluster:
        brokers = open_brokers(cluster)
        assert [led_by(brokers.leader("clicks", number)) for number in (0, 1)] == [0, 1]
        assert brokers.leader("clicks", 1).epoch == 9
        assert len(cluster.heard(METADATA)) == 1
        brokers.forget("clicks")
        assert led_by(brokers.leader("clicks", 0)) == 0
        assert len(cluster.heard(METADATA)) == 2


def test_a_broker_that_is_down_hides_nothing(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: Log(entries=[], end=0, leader=1)}) as cluster:
        cluster.brokers[0].close()
        assert led_by(open_brokers(cluster).leader("clicks", 0)) == 1


def test_when_all_are_down_the_last_refusal_is_told_after_all_attempts(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        brokers = open_brokers(cluster)
        for broker in cluster.brokers:
            broker.close()
        with pytest.raises(ConnectFailed) as raised:
            brokers.all_topics()
        assert raised.value.where.cluster == "main"


# Before v4 a broker may create the topic it is asked about.
@pytest.mark.parametrize("version", range(14))
def test_asking_never_creates_a_topic(version: int, open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}, offered={**EVERYTHING, METADATA: (version, version)}) as cluster:
        brokers = open_brokers(cluster)
        assert brokers.topic("nothing") is None
        assert brokers.topic("clicks") is not None
        for one in cluster.heard(METADATA):
            request: Any = one.request
            assert not request.topics if version < 4 else not request.allow_auto_topic_creation


def test_an_unknown_topic_or_partition_has_no_leader(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        brokers = open_brokers(cluster)
        with pytest.raises(LeaderMoved, match="nothing"):
            brokers.leader("nothing", 0)
        with pytest.raises(LeaderMoved, match="does not know this partition"):
            brokers.leader("clicks", 1)


def test_a_topic_that_may_not_be_looked_at_is_an_error(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        cluster.brokers[0].handlers[METADATA] = lambda _: MetadataResponse(
            brokers=(), topics=(MetadataTopic(error_code=29, name="clicks", partitions=()),)
        )
        with pytest.raises(BrokerError, match="29"):
            open_brokers(cluster).topic("clicks")


# fault B03
def test_what_fails_because_the_leader_moved_is_tried_on_the_next(open_brokers: OpenBrokers) -> None:
    log = Log(entries=[], end=0)
    with FakeCluster(logs={0: log}) as cluster:
        asked: list[int] = []

        def act(leader: Leader) -> str:
            asked.append(led_by(leader))
            if len(asked) < ATTEMPTS:
                log.leader = 1
                raise LeaderMoved("moved")
            return "done"

        assert open_brokers(cluster).on_leader("clicks", 0, act) == "done"
        assert asked == [0, 1, 1]


def test_the_generation_is_known_once_a_broker_was_connected_to(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        brokers = open_brokers(cluster)
        before = brokers.generation
        brokers.all_topics()
        assert (before, brokers.generation) == (None, Generation.MODERN)
        assert [broker.port for broker in brokers.known_brokers[:2]] == [broker.port for broker in cluster.brokers]


def test_a_topic_id_is_written_as_kafka_prints_it() -> None:
    assert topic_id_text(UUID(bytes=bytes(range(16)))) == "AAECAwQFBgcICQoLDA0ODw"
    assert topic_id_text(UUID(int=0)) is None


# fault W17: brokers often advertise names that only their own network knows
def test_an_advertised_address_that_leads_nowhere_is_named(open_brokers: OpenBrokers) -> None:
    with FakeCluster(logs={0: EMPTY}) as cluster:
        nowhere = MetadataBroker(node_id=0, host="127.0.0.1", port=1)
        for broker in cluster.brokers:
            broker.handlers[METADATA] = lambda one: replace(cluster.metadata(one), brokers=(nowhere,))
        with pytest.raises(ConnectFailed) as raised:
            open_brokers(cluster).on_leader("clicks", 0, lambda leader: leader.connection.versions)
        assert raised.value.where.as_dict() == {"cluster": "main", "broker": "0@127.0.0.1:1"}
