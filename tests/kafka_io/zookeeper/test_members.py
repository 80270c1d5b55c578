"""The members of a group and the partitions they own, in the texts of genuine consumers."""

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import NodeMalformed
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.zookeeper.members import (
    ConsumerSubscription,
    StaticSubscription,
    assign,
    blacklist,
    ids_path,
    owner_path,
    parse_subscription,
    threads_of,
    whitelist,
)
from kafka_io.zookeeper.node_format import NodeFormat
from kafka_io.zookeeper.node_values import check_name

DUMP = Path(__file__).parents[2] / "golden" / "v07" / "zk" / "10-consumers-live.json"
GENUINE: dict[str, Any] = {
    node["path"]: node["data"] for node in json.loads(DUMP.read_text(encoding="utf-8")) if node["data"] is not None
}
MEMBERS = {path: value for path, value in GENUINE.items() if "/ids/" in path and path.startswith("/consumers/")}


@pytest.mark.parametrize("path", MEMBERS)
def test_a_member_of_07_is_written_as_genuine_consumers_write_it(path: str) -> None:
    value = MEMBERS[path].encode()
    assert parse_subscription(path, value).value(NodeFormat.V07, timestamp_ms=0) == value


def test_the_assignment_has_the_owners_of_the_genuine_nodes() -> None:
    """For every group of the dump, the owners follow from its members and the topics."""
    shares = {path: value for path, value in GENUINE.items() if path.startswith("/brokers/topics/")}
    partitions: dict[str, list[BrokerPartition]] = {}
    for path, count in shares.items():
        _, _, _, topic, broker = path.split("/")
        partitions.setdefault(topic, []).extend(BrokerPartition(int(broker), number) for number in range(int(count)))
    expected = {path: value for path, value in GENUINE.items() if "/owners/" in path}
    owners: dict[str, str] = {}
    for path, value in MEMBERS.items():
        _, _, group, _, member = path.split("/")
        assert path == f"{ids_path(group)}/{member}"
        subscription = parse_subscription(path, value.encode())
        for topic in subscription.wanted(partitions):
            for thread, share in assign(partitions[topic], threads_of(topic, {member: subscription})).items():
                owners |= {owner_path(group, TopicPartition.of(topic, partition)): thread for partition in share}
    assert owners == expected


def test_a_member_of_08_is_written_as_json() -> None:
    path = "/consumers/g/ids/g_a"
    written = StaticSubscription({"clicks": 2, "views": 1}).value(NodeFormat.JSON, timestamp_ms=1416573000123)
    assert json.loads(written) == {
        "version": 1,
        "subscription": {"clicks": 2, "views": 1},
        "pattern": "static",
        "timestamp": "1416573000123",
    }
    for subscription in (StaticSubscription({"clicks": 2}), whitelist("cl.*", 3), blacklist("cl.*", 1)):
        assert parse_subscription(path, subscription.value(NodeFormat.JSON, timestamp_ms=5)) == subscription


@pytest.mark.parametrize(
    ("raw", "allowed", "denied"),
    [
        ("plain, gz", {"plain", "gz"}, {"plain2", "a-gz"}),
        ("'views.*'", {"views", "views-x"}, {"Views"}),
        ("a b", {"ab"}, {"a b"}),
    ],
)
def test_filters_match_whole_names_after_the_changes_that_genuine_consumers_make(
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
def test_a_member_without_a_valid_subscription_is_an_error(value: bytes) -> None:
    with pytest.raises(NodeMalformed):
        parse_subscription("/consumers/g/ids/g_a", value)


def test_an_invalid_filter_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        whitelist("(", 1)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\n"])
def test_a_name_that_no_node_can_have_is_refused(name: str) -> None:
    with pytest.raises(NodeMalformed):
        check_name("consumer", name)
