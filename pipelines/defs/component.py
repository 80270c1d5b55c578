"""PenstockComponent: `defs.yaml` of any Dagster project gets one asset for each Kafka topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, Field

from pipelines.defs.build import build_defs
from pipelines.defs.catalog.catalog import DEFAULT_NAME
from pipelines.defs.catalog.translator import PenstockTranslator, TopicProps
from resources.settings.settings import Settings

_SETTINGS_FILE = "penstock.toml"
_SETTINGS = """\
# The settings of Penstock. docs/settings.md explains all of them; `penstock config check` tests this file.
lake = "{lake}"

[clusters.main]
{cluster}

# [topics]
# allow = ["clicks", "orders\\\\..*"]    # regular expressions of whole topic names; all topics by default
"""


class ScaffoldParams(BaseModel):
    """The options of `dg scaffold defs penstock.PenstockComponent`."""

    bootstrap: str = Field(default="", description="Addresses of brokers, for example broker-1:9092,broker-2:9092")
    zookeeper: str = Field(default="", description="Addresses of ZooKeeper with the chroot, for Kafka before 0.10")
    lake: str = Field(default="lake", description="The folder or URI of the tables, for example s3://bucket/lake")


class PenstockScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Writes `defs.yaml`, and the settings file beside it."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        """The options of the command."""
        return ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Write the files. A settings file that exists stays as it is."""
        params = request.params
        cluster = f'zookeeper = "{params.zookeeper}"' if params.zookeeper else None
        bootstrap = f'bootstrap = "{params.bootstrap or "localhost:9092"}"'
        settings = request.target_path / _SETTINGS_FILE
        if not settings.exists():
            settings.write_text(_SETTINGS.format(lake=params.lake, cluster=cluster or bootstrap), encoding="utf-8")
        dg.scaffold_component(request, {"settings": _SETTINGS_FILE})


def _condition(context: dg.ResolutionContext, text: str | None) -> Any:
    return None if text is None else context.resolve_value(text, as_type=dg.AutomationCondition)  # type: ignore[type-abstract]


@dg.scaffold_with(PenstockScaffolder)
@dataclass
class PenstockComponent(dg.Component, dg.Resolvable):
    """Loads Kafka topics into Delta tables: one asset for each topic, with checks, jobs, schedules and sensors.

    A topic that is created later appears by itself. A subclass can override `get_asset_spec`.
    """

    settings: Annotated[
        str | dict[str, Any],
        dg.Resolver.default(
            description="The settings of Penstock: the path of a penstock.toml, relative to the folder of defs.yaml; "
            "or its content.",
            examples=[_SETTINGS_FILE, {"lake": "s3://bucket/lake", "clusters": {"main": {"bootstrap": "broker:9092"}}}],
        ),
    ]
    name: Annotated[
        str,
        dg.Resolver.default(
            description="The name of these definitions, which is a part of the names of their jobs and sensors. "
            "Components in one code location need different names.",
            examples=["sales"],
        ),
    ] = DEFAULT_NAME
    topics: Annotated[
        str | list[str] | None,
        dg.Resolver.default(
            description="Regular expressions of whole topic names: only these topics get assets. By default all "
            "topics that the settings allow.",
            examples=[["orders", "payments\\..*"]],
        ),
    ] = None
    key_prefix: Annotated[
        str | list[str] | None,
        dg.Resolver.default(
            description="The first parts of the keys of the assets; the cluster and the topic follow. By default lake.",
            examples=["raw", ["bronze", "kafka"]],
        ),
    ] = None
    automation_condition: Annotated[
        dg.AutomationCondition[Any] | None,
        dg.Resolver(
            _condition,
            model_field_type=str,
            description="The automation condition of each asset for which the settings have none.",
            examples=["{{ dg.AutomationCondition.on_cron('@hourly') }}"],
        ),
    ] = None
    translation: Annotated[
        TranslationFn[TopicProps] | None,
        TranslationFnResolver[TopicProps](lambda topic: {"topic": topic}),
    ] = None

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """The spec of the asset that is the topic's table.

        Args:
            topic: the topic and its settings.
        """
        spec = PenstockTranslator().get_asset_spec(topic)
        return self.translation(spec, topic) if self.translation else spec

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions. The settings are bound now; runs read a settings file again."""
        return build_defs(
            self._source(context.path),
            name=self.name,
            topics=self.topics,
            key_prefix=self.key_prefix,
            translator=_ByComponent(component=self),
            automation_condition=self.automation_condition,
        )

    def _source(self, folder: Path) -> Path | Settings:
        if isinstance(self.settings, Mapping):
            return Settings.of(self.settings, folder=folder)
        return folder / self.settings


@dataclass(frozen=True, kw_only=True)
class _ByComponent(PenstockTranslator):
    """Asks the component, which may be a subclass of the user."""

    component: PenstockComponent

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        return self.component.get_asset_spec(topic)
