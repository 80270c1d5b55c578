"""`penstock publish` with a registry encodes JSON lines as Confluent's serializers do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_io.cluster.opening import open_cluster
from kafka_io.model import OffsetRange
from kafka_io.reader.reader import PlannedRange
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry
from pipelines.cli.main import main

PLACE = '{"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}'
ORDER = (
    '{"type": "record", "name": "Order", "fields": '
    '[{"name": "id", "type": "long"}, {"name": "to", "type": ["null", "Place"], "default": null}]}'
)


@pytest.fixture(scope="module")
def registry() -> Iterator[EmbeddedSchemaRegistry]:
    with EmbeddedSchemaRegistry() as embedded:
        embedded.register("places", PLACE)
        assert embedded.register("orders-value", ORDER, references=[("Place", "places", 1)]) == 2
        embedded.register("documents", '{"type": "object"}', schema_type="JSON")
        embedded.register("messages", 'syntax = "proto3";', schema_type="PROTOBUF")
        yield embedded


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path_factory.mktemp("broker"))) as broker:
        yield f"127.0.0.1:{broker.port}"


@pytest.fixture
def home(tmp_path: Path, bootstrap: str, registry: EmbeddedSchemaRegistry) -> Path:
    """A folder with settings."""
    (tmp_path / "penstock.toml").write_text(
        f'lake = "lake"\n[clusters.main]\nbootstrap = "{bootstrap}"\n[registries.main]\nurl = "{registry.url}"\n'
    )
    return tmp_path


def publish(home: Path, lines: str, *arguments: str) -> Result:
    return CliRunner().invoke(
        main, ["--settings", str(home / "penstock.toml"), "publish", *arguments], input=lines.encode()
    )


def values_of(bootstrap: str, topic: str) -> list[bytes]:
    """The values of the only partition of a topic."""
    with open_cluster("main", bootstrap=bootstrap) as cluster:
        entry = cluster.topic(topic)
        assert entry is not None
        (bound,) = cluster.bounds(topic, entry.partitions).values()
        assert not isinstance(bound, Exception)
        offsets = OffsetRange(entry.partitions[0], bound.earliest, bound.latest)
        reader = cluster.source(entry.partitions[0]).open()
        planned = [PlannedRange(topic=topic, offsets=offsets, incarnation=entry.incarnation)]
        try:
            return [
                value
                for batches in reader.read(planned)
                for decoded in batches
                for value in decoded.batch.column("value").to_pylist()
            ]
        finally:
            reader.close()


def test_lines_are_published_as_avro(home: Path, bootstrap: str) -> None:
    result = publish(home, '{"id": 1}\n{"id": 2, "to": {"city": "Ulm"}}\n', "orders", "-", "--registry", "main")
    assert (result.exit_code, result.output) == (0, "2 messages published to orders\n")
    assert values_of(bootstrap, "orders") == [b"\0\0\0\0\x02\x02\x00", b"\0\0\0\0\x02\x04\x02\x06Ulm"]


def test_lines_are_published_with_a_json_schema_of_another_subject(home: Path, bootstrap: str) -> None:
    result = publish(home, '{"id": 1}\r\n', "docs", "-", "--subject", "documents")
    assert result.exit_code == 0, result.output
    assert values_of(bootstrap, "docs") == [b'\0\0\0\0\x03{"id": 1}']


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bad", "-", "--subject", "orders-value"], 1, "line 2: the value does not fit the schema: id: expected a"),
        (["bad", "-", "--registry", "main"], 1, "SchemaNotFound: the registry does not know it"),
        (["bad", "-", "--subject", "messages"], 1, "PROTOBUF schemas cannot be encoded from JSON"),
        (
            ["bad", "-", "--registry", "mian"],
            2,
            "there is no registry 'mian' in the settings; did you mean 'main'?",
        ),
    ],
)
def test_what_cannot_be_encoded_is_not_published(
    home: Path, bootstrap: str, arguments: list[str], code: int, message: str
) -> None:
    result = publish(home, '{"id": 1}\n{"id": "x"}\n', *arguments)
    assert result.exit_code == code
    assert message in result.output
    with open_cluster("main", bootstrap=bootstrap) as cluster:
        assert "bad" not in [topic.name for topic in cluster.topics().entries]
