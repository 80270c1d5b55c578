"""A topic with several tables in Dagster: an asset for each table, and one load for all of them."""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog, topic_schedules
from pipelines.defs.catalog.known_topics import KnownTopics
from pipelines.defs.catalog.translator import PenstockTranslator, TopicProps
from pipelines.defs.increment_asset import increment_asset
from pipelines.increments.delta_output import DeltaOutput
from pipelines.maintenance.rewind import plan_rewind, rewind
from resources.penstock import PenstockResource
from resources.settings.settings import Settings
from resources.table_names import topic_of
from tests.fakes.typed import TypedTopic
from tests.pipelines.defs.declared import LOAD, FixedTopics, catalog, defs_of, key, tick
from tests.pipelines.routes.test_routed_load import TABLES, append, table, topic

__all__ = ["topic"]  # a fixture
KEYS = [key("clicks"), *(dg.AssetKey([*key("clicks").path, route]) for route in ("orders", "payments"))]
SECTION: Mapping[str, Any] = {"format": "json", "tables": TABLES}


def settings_of(sections: Mapping[str, Any]) -> Settings:
    return Settings.model_validate({"lake": "/lake", "clusters": {"main": {"bootstrap": "b:9"}}, "topics": sections})


def tables_of(definitions: dg.Definitions) -> set[str]:
    keys = definitions.resolve_asset_graph().get_all_asset_keys()
    return {asset.to_user_string() for asset in keys if asset.path[0] != "kafka"}


def test_each_table_is_an_asset_of_its_own_with_its_settings() -> None:
    sections = {
        "clicks": {**SECTION, "owners": ["team:web"]},
        "clicks/orders": {"format": "raw", "owners": ["team:sales"], "state": {"key": "key"}},
    }
    definitions = defs_of("clicks", "views", settings=settings_of(sections))
    dg.Definitions.validate_loadable(definitions)
    names = {"lake/main/clicks", "lake/main/clicks/orders", "lake/main/clicks/payments", "lake/main/views"}
    assert tables_of(definitions) == {*names, "lake/main/clicks/orders/state"}
    graph = definitions.resolve_asset_graph()
    own, orders, payments = (graph.get(asset) for asset in KEYS)
    assert (own.owners, orders.owners, payments.owners) == (["team:web"], ["team:sales"], ["team:web"])
    assert {node.group_name for node in (own, orders, payments)} == {"main"}
    assert orders.parent_keys == payments.parent_keys == {dg.AssetKey(["kafka", "main", "clicks"])}
    assert orders.metadata["dagster/uri"] == "/lake/main/clicks~2forders"
    assert (orders.metadata["penstock/topic"], orders.metadata["penstock/table"]) == ("clicks", "clicks/orders")
    assert "penstock/table" not in own.metadata
    together = "A run that loads it also loads all other tables of the topic."
    assert own.description == f"The Delta table of the Kafka topic clicks. {together}"
    assert orders.description == f"The Delta table clicks/orders of the Kafka topic clicks. {together}"
    of_views = graph.get(key("views")).description
    assert of_views == "The Delta table of the Kafka topic views."
    state = graph.get(dg.AssetKey([*KEYS[1].path, "state"]))
    assert (state.parent_keys, state.description) == (
        {KEYS[1]},
        "The newest row of each key of the table clicks/orders.",
    )


def test_what_is_about_the_topic_is_checked_once() -> None:
    graph = defs_of("clicks", settings=settings_of({"clicks": SECTION})).resolve_asset_graph()
    checks = {asset: {check.name for check in graph.asset_check_keys if check.asset_key == asset} for asset in KEYS}
    of_each = {"coverage", "gaps", "erasures", "schema_changes", "bad_records"}
    assert checks[KEYS[1]] == checks[KEYS[2]] == of_each
    assert checks[KEYS[0]] == of_each | {"freshness", "retention_race", "open_transactions"}


class Upper(PenstockTranslator):
    """A translator that knows nothing of routes."""

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """Another key."""
        return super().get_asset_spec(topic).replace_attributes(key=["snow", topic.name.upper()])


class Flat(PenstockTranslator):
    """A translator that chooses the keys of all tables."""

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """A key without parts."""
        return super().get_asset_spec(topic).replace_attributes(key="_".join(filter(None, (topic.name, topic.route))))


@pytest.mark.parametrize(
    ("translator", "names"),
    [
        (Upper(), {"snow/CLICKS", "snow/CLICKS/orders", "snow/CLICKS/payments"}),
        (Flat(), {"clicks", "clicks_orders", "clicks_payments"}),
    ],
)
def test_a_translator_decides_about_the_keys_of_tables_too(translator: PenstockTranslator, names: set[str]) -> None:
    definitions = defs_of("clicks", settings=settings_of({"clicks": SECTION}), translator=translator)
    dg.Definitions.validate_loadable(definitions)
    assert tables_of(definitions) == names


@pytest.mark.parametrize(("first", "twin"), [("clicks__orders", "clicks"), ("clicks", "clicks__orders")])
def test_all_tables_of_a_topic_are_in_one_multi_asset(first: str, twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Dagster gives the outputs of `clicks/orders` and `clicks__orders` the same name.
    settings, names = settings_of({"clicks.*": SECTION}), [first, twin, "views"]
    dg.Definitions.validate_loadable(defs_of(*names, settings=settings))
    [schedule] = topic_schedules(catalog(*names, settings=settings))
    assert [set(tables) for _, tables in schedule.buckets()] == [
        {first, f"{first}/orders", f"{first}/payments", "views"},
        {twin, f"{twin}/orders", f"{twin}/payments"},
    ]
    monkeypatch.setattr("pipelines.defs.catalog.catalog.MAX_TABLES_PER_ASSETS", 3)
    of_topics = [{topic_of(table) for table in tables} for _, tables in schedule.buckets()]
    assert sum(map(len, of_topics)) == len(names)
    assert len(of_topics) > 1


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        (
            {"names": {"a": "state"}},
            "'state' is no name of a table: in Dagster another asset of the topic has this name",
        ),
        ({"names": {"a": "b"}, "others": "days"}, "'days' is no name of a table"),
        ({"names": {"a": "a-b", "b": "a.b"}}, "Dagster cannot tell the tables 'a-b' and 'a.b' apart"),
    ],
)
def test_tables_that_cannot_be_assets_are_refused(tables: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        settings_of({"clicks": {"tables": {"by": "header:type", **tables}}})


def test_a_new_topic_is_requested_with_all_its_tables(instance: dg.DagsterInstance) -> None:
    class Routed(FixedTopics):
        """Fixed topics with several tables."""

        def settings(self) -> Settings:
            """The settings with the section of the topic."""
            return super().settings().model_copy(update={"topics": settings_of({"clicks": SECTION}).topics})

    penstock = Routed(clusters={"main": ["clicks"]})
    first = tick(instance, penstock)
    [request] = tick(instance, penstock, first.cursor).run_requests
    assert request.asset_selection == KEYS
    assert request.tags["topics"] == "clicks"


def test_an_increment_depends_on_the_asset_of_its_table(tmp_path: Any) -> None:
    settings = {"lake": str(tmp_path), "clusters": {"main": {"bootstrap": "b:9"}}}
    output = DeltaOutput(uri=str(tmp_path / "sizes"))

    @increment_asset(source="main/clicks/orders", into=output, settings=settings)
    def copies(rows: Any) -> Any:
        return rows

    [dep] = copies.get_asset_spec(dg.AssetKey("copies")).deps
    assert dep.asset_key == KEYS[1]


class Loaded:
    """The topic in Dagster."""

    def __init__(self, topic: TypedTopic, instance: dg.DagsterInstance) -> None:
        self.topic, self.instance = topic, instance

    @property
    def definitions(self) -> dg.Definitions:
        """The definitions with the settings as they are now."""
        settings = self.topic.settings
        known = {"main": KnownTopics(names=("clicks",))}
        source = PenstockResource(inline=settings)
        return definitions_of(Catalog(source=source, settings=settings, known=known))

    def run(self, *keys: dg.AssetKey, job: str = LOAD) -> dg.ExecuteInProcessResult:
        """Run a job, with these assets only."""
        whole = self.definitions.resolve_job_def(job)
        chosen = whole.get_subset(asset_selection={*keys}, asset_check_selection=set()) if keys else whole
        return chosen.execute_in_process(instance=self.instance, raise_on_error=False)

    def requested(self) -> list[set[dg.AssetKey]]:
        """The assets of each run that the schedule requests."""
        schedule = self.definitions.resolve_schedule_def(LOAD)
        now = datetime.now(UTC)
        with dg.build_schedule_context(instance=self.instance, scheduled_execution_time=now) as context:
            return [
                {*(request.asset_selection or ())} for request in schedule.evaluate_tick(context).run_requests or ()
            ]

    def log(self, result: dg.ExecuteInProcessResult) -> str:
        """The log of a run."""
        return "\n".join(str(event.message) for event in self.instance.all_logs(result.run_id))


@pytest.fixture
def routed(topic: TypedTopic, instance: dg.DagsterInstance) -> Loaded:
    return Loaded(topic, instance)


def materialized(result: dg.ExecuteInProcessResult) -> dict[dg.AssetKey, dict[str, Any]]:
    """The metadata of the materializations of a run."""
    assert result.success
    outcomes = [event.materialization for event in result.get_asset_materialization_events()]
    return {outcome.asset_key: {name: value.value for name, value in outcome.metadata.items()} for outcome in outcomes}


def evaluated(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], bool]:
    """Whether the checks of a run passed, by the last part of the key and by the check."""
    return {(one.asset_key.path[-1], one.check_name): one.passed for one in result.get_asset_check_evaluations()}


@pytest.mark.slow
@pytest.mark.parametrize("selected", [KEYS, KEYS[1:2]], ids=["all", "one"])
def test_one_run_loads_all_tables_whichever_are_selected(routed: Loaded, selected: Sequence[dg.AssetKey]) -> None:
    result = routed.run(*selected)
    metadata = materialized(result)
    assert {asset: values["rows"] for asset, values in metadata.items()} == dict.fromkeys(KEYS, 2)
    own, orders = metadata[KEYS[0]], metadata[KEYS[1]]
    assert {column.name for column in orders["dagster/column_schema"].columns} >= {"order", "_kafka_offset"}
    assert "order" not in {column.name for column in own["dagster/column_schema"].columns}
    assert (orders["topic"], orders["dagster/row_count"], orders["gaps"]) == ("clicks/orders", 2, 4)
    assert own.keys() - orders.keys() >= {"lag", "bytes", "seconds", "tables"}
    for check in ("coverage", "gaps", "schema_changes"):
        assert {name for (name, own_check), passed in evaluated(result).items() if passed and own_check == check} == {
            "clicks",
            "orders",
            "payments",
        }
    says = "the tables of a topic are loaded together: this run also loads lake/main/clicks, lake/main/clicks/payments"
    assert (says in routed.log(result)) is (len(selected) == 1)
    append(routed.topic, ["order"])
    assert routed.requested() == [{*KEYS}]
    assert materialized(routed.run(*selected)).keys() == {KEYS[1]}
    assert routed.requested() == []


@pytest.mark.slow
def test_a_table_that_was_rewound_is_loaded_again(routed: Loaded) -> None:
    routed.run(*KEYS)
    append(routed.topic, ["order"])
    routed.run(*KEYS)
    rewind(plan_rewind(table(routed.topic, "orders"), 1, run="back"))
    watched = routed.run(job="watch__main__topics")
    [behind] = [event for event in watched.all_events if event.event_type == dg.DagsterEventType.ASSET_OBSERVATION]
    assert behind.asset_key == dg.AssetKey(["kafka", "main", "clicks"])
    assert routed.requested() == [{*KEYS}]
    assert materialized(routed.run(KEYS[0])).keys() == {KEYS[1]}
    assert routed.requested() == []


@pytest.mark.slow
def test_each_table_is_verified_by_its_own_checks(routed: Loaded) -> None:
    routed.run(*KEYS)
    assert set(evaluated(routed.run(job="verify__main__topics")).values()) == {True}
    shutil.rmtree(table(routed.topic, "orders").uri)
    passed = evaluated(routed.run(job="verify__main__topics"))
    assert {pair for pair, has_passed in passed.items() if not has_passed} == {("orders", "coverage")}


@pytest.mark.slow
def test_records_that_do_not_decode_are_a_warning_of_their_table(routed: Loaded) -> None:
    routed.topic.format_ = {**SECTION, "columns": {"order": "boolean"}, "max_bad_share": 1}
    result = routed.run(*KEYS)
    assert [pair for pair, passed in evaluated(result).items() if not passed] == [("orders", "bad_records")]
    assert "clicks/orders: 2 records do not decode" in routed.log(result)
    watched = evaluated(routed.run(job="watch__main__topics"))
    assert {name for name, check in watched if check == "freshness"} == {"clicks"}
    assert {name: passed for (name, check), passed in watched.items() if check == "bad_records"} == {
        "clicks": True,
        "payments": True,
    }


@pytest.mark.slow
def test_each_table_has_its_complete_hours(routed: Loaded) -> None:
    routed.topic = replace(routed.topic, format_={**SECTION, "event_time": "timestamp", "complete": "hourly"})
    routed.run(*KEYS)
    with dg.build_sensor_context(instance=routed.instance, definitions=routed.definitions) as context:
        found_first = routed.definitions.resolve_sensor_def("complete_hours__main").evaluate_tick(context)
    assert "new topics with complete hours or days: 3" in str(found_first.skip_message)
