"""Two generations never share a registry unnoticed."""

import pytest

from kafka_io.errors import RegistryError
from kafka_io.registry.dialect import Dialect, Evidence


def test_nothing_seen_is_nothing_known() -> None:
    assert Evidence().dialect is None


@pytest.mark.parametrize("dialect", list(Dialect))
def test_nodes_of_one_dialect_agree(dialect: Dialect) -> None:
    evidence = Evidence()
    for path in ("/a", "/b"):
        evidence.add(dialect, path)
    assert evidence.dialect == dialect


def test_a_second_dialect_is_an_error_that_names_a_node_of_each() -> None:
    evidence = Evidence()
    evidence.add(Dialect.V07, "/brokers/ids/1")
    evidence.add(Dialect.V07, "/brokers/ids/2")
    with pytest.raises(RegistryError, match=r"'/brokers/ids/1' is of Kafka 0\.7 and '/x' is of Kafka 0\.8 or later"):
        evidence.add(Dialect.JSON, "/x")
