"""The example projects in docs/examples work against a broker: what is downstream runs only after loads with rows."""

import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing.utils import create_defs_folder_sandbox

from kafka_io.producer.opening import open_producer
from kafka_io.producer.publishing import publish_values
from kafka_io.producer.settings import ProducerSettings
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.docs.pages import ROOT, run_blocks

# Dagster reads YAML with a function of pydantic that is deprecated.
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")]
EXAMPLES = ROOT / "docs" / "examples"
ORDERS = [
    b'{"id": 1, "customer": "ann", "amount": 120.5}',
    b'{"id": 2, "customer": "bob", "amount": 3.0}',
    b'{"id": 3, "customer": "ann", "amount": 1.0}',
]


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """The instance that the environment names, as code locations see it."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as local:
        yield local


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as server:
        yield f"127.0.0.1:{server.port}"


def copied(example: str, folder: Path, bootstrap: str) -> Path:
    """A copy of an example whose settings lead to the broker."""
    copy = shutil.copytree(EXAMPLES / example, folder / example)
    (settings,) = copy.rglob("penstock.toml")
    settings.write_text(settings.read_text().replace("localhost:9092", bootstrap))
    return copy


@dataclass(kw_only=True)
class Project:
    """A project with a daemon's work done by hand: ticks, loads, and automation conditions.

    Args:
        load: loads the code location. A tick loads it again.
    """

    load: Callable[[], dg.Definitions]
    instance: dg.DagsterInstance
    bootstrap: str
    cursor: Any = None
    _loaded: dg.Definitions | None = None

    @property
    def defs(self) -> dg.Definitions:
        """The definitions as the last tick left them. To load them takes more than a second."""
        if self._loaded is None:
            self._loaded = self.load()
        return self._loaded

    def publish(self, topic: str) -> None:
        """Publish the orders."""
        with open_producer(bootstrap=self.bootstrap, settings=ProducerSettings(idempotent=False)) as producer:
            publish_values((producer,), topic, ORDERS)

    def tick(self) -> None:
        """Let the sensor look for new topics."""
        with dg.build_sensor_context(instance=self.instance, definitions=self.defs) as context:
            self.defs.resolve_sensor_def("new_topics__main").evaluate_tick(context)
        self._loaded = None

    def run(self, *keys: dg.AssetKey) -> dg.ExecuteInProcessResult:
        """Materialize assets as the UI does."""
        job = self.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=set(keys))
        result = job.execute_in_process(instance=self.instance)
        assert result.success
        return result

    def requested(self) -> set[dg.AssetKey]:
        """The assets whose automation conditions request a run now."""
        result = dg.evaluate_automation_conditions(self.defs, instance=self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        return {key for key in self.defs.resolve_asset_graph().get_all_asset_keys() if result.get_num_requested(key)}


def check_story(project: Project, topic: str, downstream: dg.AssetKey) -> dg.ExecuteInProcessResult:
    """Load a topic twice with new records and once without; what is downstream runs twice. Returns its last run."""
    table = dg.AssetKey(["lake", "main", topic])
    project.publish(topic)
    project.tick()
    assert project.requested() == set()
    project.run(table)
    assert project.requested() == {downstream}
    project.run(downstream)
    assert project.requested() == set()
    project.run(table)
    assert project.requested() == set()
    project.publish(topic)
    project.run(table)
    assert project.requested() == {downstream}
    return project.run(downstream)


def metadata(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    """The metadata of the materialization in a run."""
    (event,) = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


def test_the_project_with_a_component(
    tmp_path: Path, instance: dg.DagsterInstance, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied("components", tmp_path, broker)
    monkeypatch.syspath_prepend(str(copy / "src"))
    project = Project(load=import_module("shop.definitions").defs, instance=instance, bootstrap=broker)
    result = check_story(project, "orders", dg.AssetKey("revenue"))
    assert metadata(result)["revenue"] == {"ann": 243.0, "bob": 6.0}
    assert metadata(project.run(dg.AssetKey("large_orders")))["orders"] == 2
    node = project.defs.resolve_asset_graph().get(dg.AssetKey(["lake", "main", "orders"]))
    assert node.owners == ["team:shop"]
    project.publish("payments.cards")
    project.publish("other")
    project.tick()
    tables = {key.path[-1] for key in project.defs.resolve_asset_graph().get_all_asset_keys() if "lake" in key.path}
    assert tables == {"orders", "payments.cards"}
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def test_the_project_in_plain_python(tmp_path: Path, instance: dg.DagsterInstance, broker: str) -> None:
    copy = copied("python", tmp_path, broker)
    project = Project(
        load=lambda: runpy.run_path(str(copy / "definitions.py"))["defs"], instance=instance, bootstrap=broker
    )
    result = check_story(project, "shop.orders", dg.AssetKey("order_count"))
    assert result.output_for_node("order_count") == 6
    assert project.defs.executor is dg.multiprocess_executor
    node = project.defs.resolve_asset_graph().get(dg.AssetKey(["lake", "main", "shop.orders"]))
    assert node.group_name == "shop"


def test_the_component_on_the_page_is_complete(instance: dg.DagsterInstance) -> None:
    (block,) = [block for block in run_blocks(ROOT / "docs" / "dagster.md", "yaml") if block.text.startswith("type:")]
    instance.add_dynamic_partitions("penstock/main", ["orders", "other"])
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "lake"
        folder.mkdir()
        (folder / "defs.yaml").write_text(block.text)
        with sandbox.build_all_defs() as defs:
            graph = defs.resolve_asset_graph()
            node = graph.get(dg.AssetKey(["lake", "main", "orders"]))
            assert node.automation_condition == dg.AutomationCondition.on_cron("@hourly")
            assert len(graph.get_all_asset_keys()) == 2
