"""`penstock broker`, `penstock registry` and `penstock zookeeper`: embedded servers for tests and demos."""

from pathlib import Path
from typing import Any

import click

from kafka_io.model import Generation
from kafka_io.zookeeper.node_values import MAX_ID
from pipelines.cli.options import data_dir_option, port_option

_MAX_PARTITIONS = 10_000


@click.command("broker")
@click.option(
    "--broker-id", type=click.IntRange(0, MAX_ID), metavar="N", required=True, help="The broker's id in the cluster."
)
@port_option
@data_dir_option
@click.option(
    "--zookeeper",
    metavar="HOST:PORT[/CHROOT]",
    help="The ZooKeeper where the broker registers. Without it, the broker does not register.",
)
@click.option(
    "--partitions", type=click.IntRange(1, _MAX_PARTITIONS), default=1, help="Number of partitions of a new topic."
)
@click.option(
    "--generation",
    type=click.Choice([generation.value for generation in Generation]),
    default=Generation.V07.value,
    help="The protocol generation that the broker speaks.",
)
def broker_command(
    broker_id: int, port: int, data_dir: Path, zookeeper: str | None, partitions: int, generation: str
) -> None:
    """Run an embedded broker on loopback.

    A broker of generation 0.7 serves the log directories of a genuine 0.7 broker unchanged. A broker of the other
    generations is a cluster of one broker, with consumer groups and transactions; clients of that generation can
    produce and consume.
    The broker prints a line when it is ready. SIGTERM or Ctrl-C ends it with exit code 0.

    \b
    Examples:
      penstock broker --broker-id 0 --port 9092 --data-dir b0 --zookeeper 127.0.0.1:2181
      penstock broker --broker-id 0 --port 9092 --data-dir b0 --generation modern
    """
    from kafka_io.testing.modern.config import ModernBrokerConfig
    from kafka_io.testing.modern.server import ModernBrokerServer
    from kafka_io.testing.v07.config import BrokerConfig07
    from kafka_io.testing.v07.server import BrokerServer07

    settings: dict[str, Any] = {"broker_id": broker_id, "port": port, "data_dir": data_dir, "partitions": partitions}
    if generation == Generation.V07:
        BrokerServer07(BrokerConfig07(**settings), zookeeper=zookeeper).run_foreground()
    else:
        config = ModernBrokerConfig(**settings, generation=Generation(generation))
        ModernBrokerServer(config, zookeeper=zookeeper).run_foreground()


@click.command("registry")
@port_option
@data_dir_option
def registry_command(port: int, data_dir: Path) -> None:
    """Run an embedded schema registry on loopback.

    It speaks Confluent's REST API: clients can register Avro, JSON and Protobuf schemas with references, and read them
    by id and by subject. It keeps schemas as they are sent and checks no compatibility. The registry prints a line
    when it is ready. SIGTERM or Ctrl-C ends it with exit code 0.

    \b
    Examples:
      penstock registry --port 8081 --data-dir registry
    """
    from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry

    EmbeddedSchemaRegistry(port, data_dir).run_foreground()


@click.command("zookeeper")
@port_option
@data_dir_option
def zookeeper_command(port: int, data_dir: Path) -> None:
    """Run an embedded ZooKeeper on loopback.

    ZooKeeper is a program in Java, and PySpark brings both: the command needs the extra `spark`. The server prints a
    line when it is ready. SIGTERM or Ctrl-C ends it with exit code 0.

    \b
    Examples:
      penstock zookeeper --port 2181 --data-dir zk
    """
    from resources.machines.zookeeper_server import run_foreground

    run_foreground(port, data_dir)
