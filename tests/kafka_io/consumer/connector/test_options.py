"""The settings of a connector have the same names and types as keyword arguments."""

from typing import get_type_hints

from kafka_io.consumer.connector.options import ConnectorOptions, ConnectorSettings


def test_type_checkers_know_every_setting_of_a_connector() -> None:
    assert get_type_hints(ConnectorSettings) == get_type_hints(ConnectorOptions)
