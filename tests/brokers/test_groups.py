"""Members of three clients share a group of a real broker, and Kafka's own tool shows our member."""

import subprocess
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from kafka_io.cluster.opening import open_cluster
from kafka_io.consumer.group.admin import describe_group, list_groups
from kafka_io.consumer.group.assignors import RANGE
from kafka_io.consumer.group.consumer import GroupConsumer
from kafka_io.consumer.group.settings import GroupSettings
from kafka_io.model import TopicPartition
from tests.brokers import jvm
from tests.brokers.real import VERSIONS, RealBroker
from tests.brokers.releases import RELEASES
from tests.kafka_io.consumer.group.others import ConfluentMember, Polled, PythonMember, is_shared, until
from tests.kafka_io.consumer.group.ours import OurMember
from tests.publishing import publish as publish_values_to
from tests.thorough import also

pytestmark = pytest.mark.brokers

PARTITIONS = 6
SOON_S = 120.0
# From 3.x on the tool is in another jar. The tool of this version also works with later brokers.
NEWEST_TOOL = "2.8.2"
WITH_GROUPS = [version for version in VERSIONS if version != "0.8.2.2"]


def publish(broker: RealBroker, topic: str, first: int) -> set[bytes]:
    """Publish numbered messages to each partition."""
    values = [b"%d" % number for number in range(first, first + 3 * PARTITIONS)]
    publish_values_to(topic, values, bootstrap=broker.bootstrap, batch_size=1)
    return set(values)


def member_factories(broker: RealBroker, topic: str, group: str, assignor: str) -> list[Callable[[], Any]]:
    """Functions that create a member of each client."""
    is_09 = broker.version == "0.9.0.1"
    return [
        partial(OurMember, broker.bootstrap, group, topic, assignor),
        partial(ConfluentMember, broker.bootstrap, group, topic, assignor, RELEASES[broker.version].librdkafka),
        partial(PythonMember, broker.bootstrap, group, topic, assignor, {"api_version": (0, 9)} if is_09 else {}),
    ]


@pytest.mark.parametrize(
    ("version", "assignor"),
    [
        *((version, "range") for version in WITH_GROUPS),
        # Brokers do not take part in cooperative rebalancing: an old and a new version are enough.
        ("4.1.0", "cooperative-sticky"),
        also("0.10.2.2", "cooperative-sticky"),
    ],
)
def test_members_of_three_clients_join_and_leave_and_no_record_is_missed(
    version: str, assignor: str, brokers: Callable[[str], RealBroker], topic: str
) -> None:
    broker = brokers(version)
    broker.create_topic(topic, PARTITIONS)
    group = f"mixed-{uuid.uuid4().hex[:8]}"
    clients = member_factories(broker, topic, group, assignor)
    sent = publish(broker, topic, 0)
    members: list[Polled] = []
    with ExitStack() as running:
        joined: list[Polled] = []
        # Each client leads the group once: the oldest member leads, and when it leaves, the next oldest does.
        for round_, create in enumerate([*clients, *clients[:2]]):
            polled = running.enter_context(Polled(create))
            members.append(polled)
            joined.append(polled)
            if len(joined) == len(clients):
                until(lambda: is_shared(joined, PARTITIONS), members, within_s=SOON_S)
                joined.pop(0).__exit__()
            until(lambda: is_shared(joined, PARTITIONS), members, within_s=SOON_S)
            sent.update(publish(broker, topic, 1000 * (round_ + 1)))
            until(lambda: sent <= {value for member in members for value in member.values}, members, within_s=SOON_S)
    assert {value for member in members for value in member.values} == sent


@pytest.mark.parametrize("version", WITH_GROUPS)
def test_kafkas_own_tool_shows_our_member_with_offsets_and_lag(
    version: str, brokers: Callable[[str], RealBroker], topic: str
) -> None:
    broker = brokers(version)
    broker.create_topic(topic, 1)
    publish(broker, topic, 0)
    group = f"ours-{uuid.uuid4().hex[:8]}"
    settings = GroupSettings(group=group, heartbeat_s=0.5, assignors=(RANGE,))
    with (
        open_cluster("main", bootstrap=broker.bootstrap) as cluster,
        GroupConsumer(cluster, settings, topics=[topic], auto_commit_s=None) as consumer,
    ):
        batches = consumer.poll(SOON_S)
        assert batches
        consumer.commit({TopicPartition(topic, 0): 7})
        described = describe_group(cluster, group)
        assert [member.assignment for member in described.members] == [frozenset([TopicPartition(topic, 0)])]
        assert group in {group_listing.name for group_listing in list_groups(cluster)}
        lag = described.lags[TopicPartition(topic, 0)]
        assert (lag.committed, lag.records) == (7, 3 * PARTITIONS - 7)
        [row] = [line for line in described_by_tool(broker, group) if topic in line]
        assert [word for word in row.replace(",", " ").split() if word in ("7", "11", "18")] == ["7", "18", "11"]
        assert described.members[0].client_id in row


def described_by_tool(broker: RealBroker, group: str) -> list[str]:
    """The output of `kafka-consumer-groups --describe`: one line per partition."""
    version = broker.version if broker.version in VERSIONS[: VERSIONS.index(NEWEST_TOOL)] else NEWEST_TOOL
    consumer_option = ["--new-consumer"] if version == "0.9.0.1" else []
    arguments = ["--bootstrap-server", broker.bootstrap, *consumer_option, "--describe", "--group", group]
    command = jvm.command(version, "kafka.admin.ConsumerGroupCommand", *arguments, options=("-Xmx128m",))
    completed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SOON_S)
    return completed.stdout.splitlines()
