"""Offsets of groups in ZooKeeper, as genuine consumers wrote them."""

import json
from pathlib import Path

import pytest

from kafka_io.errors import NodeMalformed
from kafka_io.model import BrokerPartition
from kafka_io.zookeeper.node_values import check_name
from kafka_io.zookeeper.offsets import offset_path, parse_offset, parse_partition
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.nodes import connected

NODES = Path(__file__).parents[2] / "golden" / "v07" / "zk"
MAX_OFFSET = 2**63 - 1


def genuine() -> dict[str, bytes]:
    """The offset nodes of genuine consumers of 0.7, some of which could not ask their broker."""
    dumps = (json.loads(file.read_text()) for file in sorted(NODES.glob("[29]0-*.json")))
    nodes = {node["path"]: node["data"] for dump in dumps for node in dump if node["data"] is not None}
    return {path: data.encode() for path, data in nodes.items() if "/offsets/" in path}


def test_every_genuine_node_is_read_and_written_alike() -> None:
    nodes = genuine()
    assert len(nodes) > 30
    for path, data in nodes.items():
        group, _, topic, _ = path.removeprefix("/consumers/").split("/")
        offset = parse_offset(path, data)
        assert offset_path(group, topic, parse_partition(path)) == path
        assert offset is None if data == b"-1" else str(offset).encode() == data
    assert parse_offset("/", nodes["/consumers/cg-white/offsets/gz/0-0"]) == 198
    assert parse_offset("/", nodes["/consumers/cg-nonascii/offsets/caf\u00e9/0-0"]) is None


@pytest.mark.parametrize(("name", "partition"), [("0-1", BrokerPartition(0, 1)), ("7", BrokerPartition(None, 7))])
def test_the_name_of_a_node_is_a_partition_of_either_generation(name: str, partition: BrokerPartition) -> None:
    assert parse_partition(f"/consumers/g/offsets/t/{name}") == partition


@pytest.mark.parametrize("name", ["", "-1", "a", "1-", "1-2-3", "0x1", "\u0661", "99999999999"])
def test_a_name_that_is_not_a_partition_is_refused(name: str) -> None:
    with pytest.raises(NodeMalformed, match=r"/consumers/g/offsets/t/"):
        parse_partition(f"/consumers/g/offsets/t/{name}")


@pytest.mark.parametrize(
    "value", [b"", b"-2", b"+1", b"01", b"1.0", b" 1", b"\xff", str(MAX_OFFSET + 1).encode(), b"1" * 100]
)
def test_a_value_that_is_not_an_offset_is_refused(value: bytes) -> None:
    with pytest.raises(NodeMalformed, match=r"'/consumers/g/offsets/t/0'"):
        parse_offset("/consumers/g/offsets/t/0", value)


@pytest.mark.parametrize("offset", [0, 1, MAX_OFFSET])
def test_an_offset_is_read_as_it_was_written(offset: int) -> None:
    assert parse_offset("/", str(offset).encode()) == offset


@pytest.mark.parametrize("group", ["", ".", "..", "a/b", "a\nb", "\x00"])
def test_a_group_name_that_would_be_another_path_is_refused(group: str) -> None:
    with pytest.raises(NodeMalformed, match="is not a legal group name"):
        check_name("group", group)


@pytest.mark.zookeeper
def test_genuine_nodes_are_read_group_by_group(chroot: str) -> None:
    nodes = {path: data for path, data in genuine().items() if "caf" not in path}
    with connected(chroot) as client:
        for path, data in nodes.items():
            client.create(path, data, makepath=True)
    with ZooKeeper.open(chroot) as zookeeper:
        assert zookeeper.group_offsets("cg-white", ["gz", "nothing"]) == {
            "gz": {BrokerPartition(0, 0): 198, BrokerPartition(0, 1): 0},
            "nothing": {},
        }
        assert sum(map(len, zookeeper.group_offsets("cg-black").values())) == 33
        assert zookeeper.group_offsets("nobody") == {}


@pytest.mark.zookeeper
def test_the_last_commit_counts_for_all_readers(chroot: str) -> None:
    partition = BrokerPartition(0, 1)
    with ZooKeeper.open(chroot) as zookeeper:
        for offset in (7, 5):
            zookeeper.commit_group_offsets("lake", {"clicks": {partition: offset, BrokerPartition(1, 0): 0}})
        assert zookeeper.group_offsets("lake") == {"clicks": {partition: 5, BrokerPartition(1, 0): 0}}
    with connected(chroot) as client:
        assert client.get("/consumers/lake/offsets/clicks/0-1")[0] == b"5"
        client.set("/consumers/lake/offsets/clicks/0-1", b"soon")
    with ZooKeeper.open(chroot) as zookeeper, pytest.raises(NodeMalformed, match="is not a number"):
        zookeeper.group_offsets("lake")
