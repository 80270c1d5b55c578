"""The members of a group and what they own, in the texts of genuine consumers."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import NodeMalformed
from kafka_io.model import BrokerPartition
from kafka_io.registry.dialect import RegistryFormat
from kafka_io.registry.members import (
    ConsumerSubscription,
    StaticSubscription,
    blacklist,
    check_member_name,
    ids_path,
    owner_path,
    parse_subscription,
    threads_of,
    whitelist,
)
from kafka_io.registry.rebalance import assign

DUMP = Path(__file__).parents[2] / "golden" / "v07" / "zk" / "10-consumers-live.json"
GENUINE: dict[str, Any] = {
    node["path"]: node["data"] for node in json.loads(DUMP.read_text(encoding="utf-8")) if node["data"] is not None
}
MEMBERS = {path: value for path, value in GENUINE.items() if "/ids/" in path and path.startswith("/consumers/")}


@pytest.mark.parametrize("path", MEMBERS)
def test_what_genuine_consumers_of_07_registered_is_what_we_write(path: str) -> None:
    value = MEMBERS[path].encode()
    assert parse_subscription(path, value).value(RegistryFormat.V07, timestamp_ms=0) == value


def test_the_owners_are_those_of_the_genuine_nodes() -> None:
    """Every group of the dump: who owns what follows from its members and the topics."""
    shares = {path: value for path, value in GENUINE.items() if path.startswith("/brokers/topics/")}
    partitions: dict[str, list[BrokerPartition]] = {}
    for path, count in shares.items():
        _, _, _, topic, broker = path.split("/")
        partitions.setdefault(topic, []).extend(BrokerPartition(int(broker), number) for number in range(int(count)))
    expected = {path: value for path, value in GENUINE.items() if "/owners/" in path}
    found: dict[str, str] = {}
    for path, value in MEMBERS.items():
        _, _, group, _, member = path.split("/")
        assert path == f"{ids_path(group)}/{member}"
        subscription = parse_subscription(path, value.encode())
        for topic in subscription.wanted(partitions):
            for thread, share in assign(partitions[topic], threads_of(topic, {member: subscription})).items():
                found |= {owner_path(group, topic, partition): thread for partition in share}
    assert found == expected


def test_what_consumers_of_08_register() -> None:
    path = "/consumers/g/ids/g_a"
    written = StaticSubscription({"clicks": 2, "views": 1}).value(RegistryFormat.JSON, timestamp_ms=1416573000123)
    assert json.loads(written) == {
        "version": 1,
        "subscription": {"clicks": 2, "views": 1},
        "pattern": "static",
        "timestamp": "1416573000123",
    }
    for subscription in (StaticSubscription({"clicks": 2}), whitelist("cl.*", 3), blacklist("cl.*", 1)):
        assert parse_subscription(path, subscription.value(RegistryFormat.JSON, timestamp_ms=5)) == subscription


@pytest.mark.parametrize(
    ("raw", "allowed", "denied"),
    [
        ("plain, gz", {"plain", "gz"}, {"plain2", "a-gz"}),
        ("'views.*'", {"views", "views-x"}, {"Views"}),
        ("a b", {"ab"}, {"a b"}),
    ],
)
def test_filters_match_whole_names_after_the_tidying_of_genuine_consumers(
    raw: str, allowed: set[str], denied: set[str]
) -> None:
    everything = allowed | denied
    assert set(whitelist(raw, 1).wanted(everything)) == allowed
    assert set(blacklist(raw, 1).wanted(everything)) == denied


def test_threads_are_those_of_the_members_that_consume_the_topic() -> None:
    members: dict[str, ConsumerSubscription] = {
        "g_a": StaticSubscription({"clicks": 2}),
        "g_b": whitelist("cl.*", 1),
        "g_c": blacklist("clicks", 5),
    }
    assert threads_of("clicks", members) == ["g_a-0", "g_a-1", "g_b-0"]
    assert threads_of("views", members) == [f"g_c-{number}" for number in range(5)]


# fault Z04
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[1]",
        b"\xff",
        b"*1*(",
        b'{ "clicks": -1 }',
        b'{ "clicks": 100000000 }',
        b'{ "clicks": "2" }',
        b'{"version":1,"subscription":{"a":1,"b":1},"pattern":"white_list","timestamp":"1"}',
        b'{"version":1,"subscription":{"(":1},"pattern":"black_list","timestamp":"1"}',
        b'{"version":1,"subscription":{"a":1},"pattern":"grey_list","timestamp":"1"}',
    ],
)
def test_a_member_that_does_not_say_what_it_consumes_is_an_error(value: bytes) -> None:
    with pytest.raises(NodeMalformed):
        parse_subscription("/consumers/g/ids/g_a", value)


def test_a_filter_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        whitelist("(", 1)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\n"])
def test_names_that_no_node_can_have_are_refused(name: str) -> None:
    with pytest.raises(NodeMalformed):
        check_member_name(name)
