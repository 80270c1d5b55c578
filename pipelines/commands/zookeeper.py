"""`penstock zookeeper`."""

from pathlib import Path

import click

from pipelines.commands.parts import data_dir_option, port_option


@click.command("zookeeper")
@port_option
@data_dir_option
def zookeeper_command(port: int, data_dir: Path) -> None:
    """Run an embedded ZooKeeper on loopback.

    It says when it is ready, and ends with SIGTERM or Ctrl-C: exit code 0.

    \b
    Examples:
      penstock zookeeper --port 2181 --data-dir zk
    """
    from resources.zookeeper_server import run_foreground

    run_foreground(port, data_dir)
