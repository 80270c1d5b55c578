"""Runs commands on a lake with one small table."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from tests.pipelines.cli.broker_world import Make, World
from tests.small_table import SmallTable


@pytest.fixture
def penstock(small: SmallTable, tmp_path: Path) -> Callable[..., Result]:
    """Runs a command. Two loads have been committed to the table."""
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n[topics.notes]\nformat = "text"\n')
    small.commit(small.write(0, 50))
    small.commit(small.write(50, 80), small.write(0, 20, partition=1))

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, ["--settings", str(settings), *arguments], input=stdin)

    return run


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Creates a world in which `clicks` is loaded completely and `views` in part."""
    with ExitStack() as running:

        def make(*, settings_text: str = "", **broker: Any) -> World:
            config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker", **broker)
            server = running.enter_context(ModernBrokerServer(config))
            settings = tmp_path / "penstock.toml"
            settings.write_text(
                f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{server.port}"\n{settings_text}'
            )
            world = World(settings_file=settings, port=server.port)
            for topic, stop in (("clicks", 20), ("views", 12)):
                world.publish(topic)
                world.load(topic, stop)
            return world

        yield make
