"""Groups of this library, librdkafka and kafka-python: whichever leads, each partition has one owner."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from tests.kafka_io.consumer.group.conftest import PARTITIONS, SOON_S, GroupBroker
from tests.kafka_io.consumer.group.others import Client, ConfluentMember, Polled, PythonMember, is_shared, until
from tests.kafka_io.consumer.group.ours import OurMember
from tests.thorough import first

pytestmark = pytest.mark.slow  # members of three clients in processes of their own

KINDS: dict[str, Callable[..., Client]] = {"ours": OurMember, "confluent": ConfluentMember, "python": PythonMember}
# The first member leads the group.
ORDERS = [("ours", "confluent", "python"), ("confluent", "python", "ours"), ("python", "ours", "confluent")]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("order", first(1, ORDERS), ids=lambda order: order[0])
def test_each_message_is_read_and_each_partition_has_one_owner(
    group_broker: GroupBroker, assignor: str, order: tuple[str, ...]
) -> None:
    sent = set(group_broker.publish(12))
    members: list[Polled] = []
    with ExitStack() as running:
        leader, *others = [
            Polled(partial(KINDS[name], group_broker.address, "mixed", "clicks", assignor)) for name in order
        ]
        with leader:
            members.append(leader)
            until(lambda: is_shared([leader], PARTITIONS), members, within_s=SOON_S)
            for member in others:
                members.append(running.enter_context(member))
                until(lambda: is_shared(members, PARTITIONS), members, within_s=SOON_S)
            sent |= set(group_broker.publish(12))
            until(lambda: sent <= {value for member in members for value in member.values}, members, within_s=SOON_S)
        until(lambda: is_shared(others, PARTITIONS), others, within_s=SOON_S)
        sent |= set(group_broker.publish(12))
        until(lambda: sent <= {value for member in members for value in member.values}, members, within_s=SOON_S)
    assert {value for member in members for value in member.values} == sent
