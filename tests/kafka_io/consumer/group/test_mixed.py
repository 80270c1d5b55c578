"""A group of three clients, ours, librdkafka's, kafka-python's: whichever leads, each partition is one member's."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from tests.kafka_io.consumer.group.conftest import PARTITIONS, SOON_S, Ground
from tests.kafka_io.consumer.group.others import Client, ConfluentMember, Polled, PythonMember, shared_out, until
from tests.kafka_io.consumer.group.ours import OurMember

KINDS: dict[str, Callable[..., Client]] = {"ours": OurMember, "confluent": ConfluentMember, "python": PythonMember}
# Who comes first leads.
ORDERS = [("ours", "confluent", "python"), ("confluent", "python", "ours"), ("python", "ours", "confluent")]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order[0])
def test_each_message_is_read_and_each_partition_is_one_member_s(
    ground: Ground, assignor: str, order: tuple[str, ...]
) -> None:
    sent = set(ground.publish(12))
    members: list[Polled] = []
    with ExitStack() as running:
        first, *others = [Polled(partial(KINDS[name], ground.address, "mixed", "clicks", assignor)) for name in order]
        with first:
            members.append(first)
            until(lambda: shared_out([first], PARTITIONS), members, within_s=SOON_S)
            for one in others:
                members.append(running.enter_context(one))
                until(lambda: shared_out(members, PARTITIONS), members, within_s=SOON_S)
            sent |= set(ground.publish(12))
            until(lambda: sent <= {value for one in members for value in one.values}, members, within_s=SOON_S)
        until(lambda: shared_out(others, PARTITIONS), others, within_s=SOON_S)
        sent |= set(ground.publish(12))
        until(lambda: sent <= {value for one in members for value in one.values}, members, within_s=SOON_S)
    assert {value for one in members for value in one.values} == sent
