"""`penstock broker`."""

from pathlib import Path

import click

from kafka_io.model import Generation
from pipelines.commands.parts import data_dir_option, port_option


@click.command("broker")
@click.option("--broker-id", type=click.IntRange(0), metavar="N", required=True, help="Its number in the cluster.")
@port_option
@data_dir_option
@click.option("--zookeeper", metavar="HOST:PORT[/CHROOT]", help="Where to register; without it, nowhere.")
@click.option("--partitions", type=click.IntRange(1), default=1, show_default=True, help="Partitions of a new topic.")
@click.option(
    "--generation",
    type=click.Choice([one.value for one in Generation]),
    default=Generation.V07.value,
    show_default=True,
    help="Its dialect.",
)
def broker_command(
    broker_id: int, port: int, data_dir: Path, zookeeper: str | None, partitions: int, generation: str
) -> None:
    """Run an embedded broker on loopback.

    One of 0.7 serves the log directories of a genuine 0.7 broker as they are. The others are clusters of one broker,
    with groups and transactions; clients of their time produce to them and read from them.
    It says when it is ready, and ends with SIGTERM or Ctrl-C: exit code 0.

    \b
    Examples:
      penstock broker --broker-id 0 --port 9092 --data-dir b0 --zookeeper 127.0.0.1:2181
      penstock broker --broker-id 0 --port 9092 --data-dir b0 --generation modern
    """
    from kafka_io.broker.config import BrokerConfig
    from kafka_io.broker.foreground import run_foreground
    from kafka_io.broker.modern.config import ModernBrokerConfig

    chosen = Generation(generation)
    config: BrokerConfig | ModernBrokerConfig
    if chosen is Generation.V07:
        config = BrokerConfig(broker_id=broker_id, port=port, data_dir=data_dir, partitions=partitions)
    else:
        config = ModernBrokerConfig(
            broker_id=broker_id, port=port, data_dir=data_dir, partitions=partitions, generation=chosen
        )
    run_foreground(config, zookeeper)
