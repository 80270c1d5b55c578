"""Two generations of Kafka never share a chroot unnoticed."""

import pytest

from kafka_io.errors import RegistryError
from kafka_io.zookeeper.node_format import FormatEvidence, NodeFormat


def test_the_format_is_unknown_without_evidence() -> None:
    assert FormatEvidence().node_format is None


@pytest.mark.parametrize("node_format", list(NodeFormat))
def test_nodes_of_one_format_agree(node_format: NodeFormat) -> None:
    evidence = FormatEvidence()
    for path in ("/a", "/b"):
        evidence.add(node_format, path)
    assert evidence.node_format == node_format


def test_a_second_format_is_an_error_that_names_a_node_of_each() -> None:
    evidence = FormatEvidence()
    evidence.add(NodeFormat.V07, "/brokers/ids/1")
    evidence.add(NodeFormat.V07, "/brokers/ids/2")
    with pytest.raises(RegistryError, match=r"'/brokers/ids/1' is of Kafka 0\.7 and '/x' is of Kafka 0\.8 or later"):
        evidence.add(NodeFormat.JSON, "/x")
