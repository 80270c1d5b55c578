"""Two generations never share a registry unnoticed."""

import pytest

from kafka_io.errors import RegistryError
from kafka_io.registry.dialect import FormatEvidence, RegistryFormat


def test_nothing_seen_is_nothing_known() -> None:
    assert FormatEvidence().dialect is None


@pytest.mark.parametrize("dialect", list(RegistryFormat))
def test_nodes_of_one_dialect_agree(dialect: RegistryFormat) -> None:
    evidence = FormatEvidence()
    for path in ("/a", "/b"):
        evidence.add(dialect, path)
    assert evidence.dialect == dialect


def test_a_second_dialect_is_an_error_that_names_a_node_of_each() -> None:
    evidence = FormatEvidence()
    evidence.add(RegistryFormat.V07, "/brokers/ids/1")
    evidence.add(RegistryFormat.V07, "/brokers/ids/2")
    with pytest.raises(RegistryError, match=r"'/brokers/ids/1' is of Kafka 0\.7 and '/x' is of Kafka 0\.8 or later"):
        evidence.add(RegistryFormat.JSON, "/x")
