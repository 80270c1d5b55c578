"""`penstock load` loads the part of the logs that --from and --to select."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from resources.stores.lake_marker import use_lake
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding

Load = Callable[..., int]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Loads the topic `clicks`, which has ten messages, and returns the number of loaded rows."""
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{number}\n" for number in range(10)))
    with ModernBrokerServer(ModernBrokerConfig(broker_id=0, data_dir=tmp_path / "broker")) as broker:
        settings = tmp_path / "penstock.toml"
        settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')

        def penstock(*arguments: str) -> str:
            result = CliRunner().invoke(main, ["--settings", str(settings), *arguments, "--json"])
            assert (result.exit_code, result.stderr) == (0, "")
            return result.stdout

        assert json.loads(penstock("publish", "clicks", str(lines)))["results"] == [
            {"cluster": "main", "topic": "clicks", "messages": 10}
        ]
        use_lake(Lake.of(Settings.load(settings)))
        yield lambda *arguments: int(json.loads(penstock("load", "clicks", *arguments))["results"][0]["rows"])


def test_a_new_table_begins_at_the_given_point_and_older_records_can_be_loaded_later(load: Load) -> None:
    assert load("--from", "latest") == 0
    assert load() == 0
    assert load("--from", "earliest") == 10
    assert load("--from", "earliest") == 0


def test_a_load_ends_at_the_given_point_and_the_next_continues_there(load: Load) -> None:
    assert load("--to", "-1h") == 0
    assert load("--from", "-1h", "--to", "latest") == 10


def test_the_first_load_says_that_the_lake_is_new(tmp_path: Path) -> None:  # fault N17
    settings, lake = tmp_path / "penstock.toml", tmp_path / "lake"
    with FakeCluster(logs={0: holding(0, 5)}) as fake:
        settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{fake.bootstrap[0].address}"\n')
        first, second = (CliRunner().invoke(main, ["--settings", str(settings), "load", "clicks"]) for _ in range(2))
    assert [result.exit_code for result in (first, second)] == [0, 0]
    assert f"the lake {lake} is new: it has no table" in first.stderr
    assert "is new" not in second.stderr
