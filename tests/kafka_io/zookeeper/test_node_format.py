"""Two generations of Kafka never share a registry unnoticed."""

import pytest

from kafka_io.errors import RegistryError
from kafka_io.zookeeper.node_format import FormatEvidence, RegistryFormat


def test_the_format_is_unknown_without_evidence() -> None:
    assert FormatEvidence().registry_format is None


@pytest.mark.parametrize("registry_format", list(RegistryFormat))
def test_nodes_of_one_format_agree(registry_format: RegistryFormat) -> None:
    evidence = FormatEvidence()
    for path in ("/a", "/b"):
        evidence.add(registry_format, path)
    assert evidence.registry_format == registry_format


def test_a_second_format_is_an_error_that_names_a_node_of_each() -> None:
    evidence = FormatEvidence()
    evidence.add(RegistryFormat.V07, "/brokers/ids/1")
    evidence.add(RegistryFormat.V07, "/brokers/ids/2")
    with pytest.raises(RegistryError, match=r"'/brokers/ids/1' is of Kafka 0\.7 and '/x' is of Kafka 0\.8 or later"):
        evidence.add(RegistryFormat.JSON, "/x")
