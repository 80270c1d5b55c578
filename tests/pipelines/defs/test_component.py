"""PenstockComponent in `defs.yaml`: what it builds, what a user can change, and what `dg scaffold defs` writes."""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing.utils import DefsFolderSandbox, create_defs_folder_sandbox

import penstock
from pipelines.defs.catalog.translator import TopicProps
from pipelines.defs.component import PenstockComponent
from resources.settings.settings import Settings

# Dagster reads YAML with a function of pydantic that is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")
INLINE = {"lake": "/lake", "clusters": {"main": {"bootstrap": "b:9092"}}}
TYPE = "penstock.PenstockComponent"


@pytest.fixture(autouse=True)
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance that knows two topics, for all names of definitions."""
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        for name in ("penstock", "sales"):
            instance.add_dynamic_partitions(f"{name}/main", ["orders", "clicks"])


@pytest.fixture
def sandbox() -> Iterator[DefsFolderSandbox]:
    with create_defs_folder_sandbox() as project:
        yield project


def write(project: DefsFolderSandbox, folder: str, attributes: Mapping[str, Any], type_: str = TYPE) -> None:
    """Write a `defs.yaml` in a folder of the project."""
    path = project.defs_folder_path / folder
    path.mkdir()
    (path / "defs.yaml").write_text(json.dumps({"type": type_, "attributes": dict(attributes)}))


def nodes(project: DefsFolderSandbox) -> dict[str, Any]:
    """The assets of all components, by key."""
    with project.build_all_defs() as defs:
        dg.Definitions.validate_loadable(defs)
        graph = defs.resolve_asset_graph()
        return {key.to_user_string(): graph.get(key) for key in graph.get_all_asset_keys()}


def test_a_component_has_an_asset_for_each_topic(sandbox: DefsFolderSandbox) -> None:
    write(sandbox, "lake", {"settings": INLINE})
    assert nodes(sandbox).keys() == {"lake/main/orders", "lake/main/clicks", "kafka/main/orders", "kafka/main/clicks"}


def test_the_path_of_the_settings_begins_at_the_folder_of_the_component(sandbox: DefsFolderSandbox) -> None:
    write(sandbox, "raw", {"settings": "mine.toml", "topics": "orders"})
    (sandbox.defs_folder_path / "raw" / "mine.toml").write_text('lake = "tables"\n[clusters.main]\nbootstrap = "b:9"\n')
    node = nodes(sandbox)["lake/main/orders"]
    assert node.metadata["dagster/uri"].endswith("/tables/main/orders")


def test_attributes_choose_topics_keys_and_conditions(sandbox: DefsFolderSandbox) -> None:
    attributes = {
        "settings": INLINE,
        "topics": ["ord.*"],
        "key_prefix": ["bronze", "kafka"],
        "automation_condition": "{{ dg.AutomationCondition.on_cron('@hourly') }}",
        "translation": {"group_name": "from_{{ topic.cluster }}", "tags": {"domain": "shop"}},
    }
    write(sandbox, "lake", attributes)
    found = nodes(sandbox)
    assert found.keys() == {"bronze/kafka/main/orders", "kafka/main/orders"}
    node = found["bronze/kafka/main/orders"]
    assert node.automation_condition == dg.AutomationCondition.on_cron("@hourly")
    assert node.group_name == "from_main"
    assert node.tags.items() >= {"domain": "shop"}.items()


def test_two_components_can_load_the_same_topics(sandbox: DefsFolderSandbox) -> None:
    write(sandbox, "first", {"settings": INLINE})
    write(sandbox, "second", {"settings": INLINE, "name": "sales", "key_prefix": "sales"})
    found = nodes(sandbox)
    parents = {name: {key.to_user_string() for key in node.parent_keys} for name, node in found.items()}
    assert parents["lake/main/orders"] == {"kafka/main/orders"}
    assert parents["sales/main/orders"] == {"kafka/sales/main/orders"}


class Renamed(PenstockComponent):
    """A component of a user."""

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """Another key."""
        return super().get_asset_spec(topic).replace_attributes(key=[topic.name.upper()])


def test_a_subclass_decides_about_the_spec(sandbox: DefsFolderSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_components", sys.modules[__name__])
    write(sandbox, "lake", {"settings": INLINE}, "my_components.Renamed")
    assert {"ORDERS", "CLICKS"} <= nodes(sandbox).keys()


def test_wrong_settings_fail_with_a_sentence(sandbox: DefsFolderSandbox) -> None:
    write(sandbox, "lake", {"settings": {"lake": "/lake", "clusters": {"main": {"port": 9092}}}})
    with pytest.raises(Exception, match="PenstockComponent") as failure:
        nodes(sandbox)
    assert "clusters.main" in str(failure.value.__cause__)
    assert "port" in str(failure.value.__cause__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "cluster"),
    [
        ({}, {"bootstrap": "localhost:9092"}),
        ({"bootstrap": "a:1,b:2", "lake": "s3://bucket/lake"}, {"bootstrap": "a:1,b:2"}),
        ({"zookeeper": "z:2181/kafka"}, {"zookeeper": "z:2181/kafka"}),
    ],
)
def test_the_scaffold_is_complete(sandbox: DefsFolderSandbox, options: dict[str, Any], cluster: dict[str, str]) -> None:
    folder = sandbox.scaffold_component(PenstockComponent, "lake", scaffold_params=options)
    content = tomllib.loads((folder / "penstock.toml").read_text())
    assert content == {"lake": options.get("lake", "lake"), "clusters": {"main": cluster}}
    assert Settings.load(folder / "penstock.toml").clusters.keys() == {"main"}
    assert "lake/main/orders" in nodes(sandbox)


def test_the_scaffold_keeps_a_settings_file(sandbox: DefsFolderSandbox) -> None:
    folder = sandbox.defs_folder_path / "lake"
    folder.mkdir()
    (folder / "penstock.toml").write_text("mine")
    sandbox.scaffold_component(PenstockComponent, "lake")
    assert (folder / "penstock.toml").read_text() == "mine"


def test_every_attribute_explains_itself() -> None:
    properties = PenstockComponent.model().model_json_schema()["properties"]
    explained = {name for name, content in properties.items() if content.get("description")}
    assert explained | {"translation"} == set(properties)
    assert penstock.PenstockComponent is PenstockComponent
