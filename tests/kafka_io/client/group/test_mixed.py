"""A group of three clients, ours, librdkafka's, kafka-python's: whichever leads, each partition is one member's."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from tests.kafka_io.client.group.conftest import PARTITIONS, SOON_S, Ground
from tests.kafka_io.client.group.others import Client, ConfluentMember, Polled, PythonMember
from tests.kafka_io.client.group.ours import OurMember

KINDS: dict[str, Callable[..., Client]] = {"ours": OurMember, "confluent": ConfluentMember, "python": PythonMember}
# Who comes first leads.
ORDERS = [("ours", "confluent", "python"), ("confluent", "python", "ours"), ("python", "ours", "confluent")]


def until(holds: Callable[[], bool], members: list[Polled]) -> None:
    deadline_s = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline_s, [sorted(one.assignment) for one in members]
        time.sleep(0.05)


def shared_out(members: list[Polled]) -> bool:
    """Whether each partition is one member's, and each member has some."""
    places = [place for one in members for place in one.assignment]
    return len(places) == len(set(places)) == PARTITIONS and all(one.assignment for one in members)


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
            until(lambda: shared_out([first]), members)
            for one in others:
                members.append(running.enter_context(one))
                until(lambda: shared_out(members), members)
            sent |= set(ground.publish(12))
            until(lambda: sent <= {value for one in members for value in one.values}, members)
        until(lambda: shared_out(others), others)
        sent |= set(ground.publish(12))
        until(lambda: sent <= {value for one in members for value in one.values}, members)
    assert {value for one in members for value in one.values} == sent
