"""The Dagster definitions per cluster and schedule, and the errors for wrong settings."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import dagster as dg
import pytest
from click.testing import CliRunner, Result
from dagster._cli import create_dagster_cli
from dagster._serdes import serialize_value

from pipelines.defs.build import build_defs
from pipelines.defs.catalog.catalog import topic_schedules
from pipelines.defs.catalog.known_topics import read_known
from pipelines.defs.catalog.translator import PenstockTranslator, TopicProps
from resources.machines import own_process
from resources.settings.schedules import ScheduleSettings
from resources.settings.settings import PATH_VARIABLE, Alerts, ClusterSettings, Settings
from tests.pipelines.defs.declared import catalog, defs_of, key

ROOT = Path(__file__).parents[3]
TWO = Settings(
    lake="/nowhere",
    clusters={"new-one": ClusterSettings(bootstrap="b:9092"), "old": ClusterSettings(zookeeper="z:2181")},
    schedules={"billing": ScheduleSettings(topics=("bill.*",), clusters=("new-one",), cron="*/5 * * * *")},
    alerts=Alerts(command=("true",)),
)


def test_everything_of_a_cluster_is_declared() -> None:
    defs = defs_of("clicks", "Order.Events")
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert {asset.to_user_string() for asset in graph.get_all_asset_keys()} == {
        "kafka/main/clicks",
        "kafka/main/Order.Events",
        "lake/main/clicks",
        "lake/main/Order.Events",
    }
    checks = {(check.asset_key, check.name) for check in graph.asset_check_keys}
    names = ("coverage", "gaps", "erasures", "freshness", "retention_race", "open_transactions")
    assert checks == {(key(topic), name) for topic in ("clicks", "Order.Events") for name in names}
    repository = defs.get_repository_def()
    assert {sensor.name for sensor in repository.sensor_defs} == {"new_topics__main", "lost_runs"}
    kinds = ("load", "watch", "verify", "clean")
    assert {schedule.name for schedule in repository.schedule_defs} == {f"{kind}__main__topics" for kind in kinds}
    jobs = {job.name for job in repository.get_all_jobs()}
    assert jobs >= {*(f"{kind}__main__topics" for kind in (*kinds, "backfill")), "replay__main"}


def test_each_cluster_and_schedule_has_its_own_definitions() -> None:
    defs = defs_of("bill.a", "clicks", settings=TWO)
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    ops = {asset.op.name: set(asset.keys) for asset in repository.assets_defs_by_key.values() if asset.is_executable}
    assert ops == {
        "penstock_load__new_one__billing": {key("bill.a", "new-one")},
        "penstock_load__new_one__topics": {key("clicks", "new-one")},
        "penstock_load__old__topics": {key("bill.a", "old"), key("clicks", "old")},
    }
    crons = {
        schedule.name: schedule.cron_schedule
        for schedule in repository.schedule_defs
        if schedule.name.startswith("load")
    }
    assert crons == {
        "load__new_one__billing": "*/5 * * * *",
        "load__new_one__topics": "*/15 * * * *",
        "load__old__topics": "*/15 * * * *",
    }
    sensors = {sensor.name for sensor in repository.sensor_defs}
    assert sensors == {
        "new_topics__new_one",
        "new_topics__old",
        "lost_runs",
        "alert_failed_runs",
        "alert_failed_checks",
    }


def test_sensors_and_schedules_run_from_the_start() -> None:
    repository = defs_of("clicks", settings=TWO).get_repository_def()
    assert {definition.default_status for definition in repository.sensor_defs} == {dg.DefaultSensorStatus.RUNNING}
    assert {definition.default_status for definition in repository.schedule_defs} == {dg.DefaultScheduleStatus.RUNNING}


# fault F17
@pytest.mark.parametrize(("topics", "runs"), [((), 0), (("clicks",), 1)])
@pytest.mark.parametrize("action", ["watch", "verify"])
def test_a_schedule_without_topics_starts_no_run(
    action: str, topics: tuple[str, ...], runs: int, instance: dg.DagsterInstance
) -> None:
    schedule = defs_of(*topics).resolve_schedule_def(f"{action}__main__topics")
    with dg.build_schedule_context(instance=instance) as context:
        assert len(schedule.evaluate_tick(context).run_requests or ()) == runs


def test_the_settings_of_a_topic_are_in_its_spec() -> None:
    sections = {
        "order.*": {
            "asset_group": "sales",
            "owners": ["team:data"],
            "tags": {"pii": "yes"},
            "description": "All orders.",
            "automation": "eager",
            "freshness_minutes": 90,
            "blocking_checks": True,
            "format": "json",
        }
    }
    settings = Settings.model_validate(
        {"lake": "/lake", "clusters": {"main": {"bootstrap": "b:9"}}, "topics": sections}
    )
    graph = defs_of("orders", "clicks", settings=settings).resolve_asset_graph()
    orders, clicks = graph.get(key("orders")), graph.get(key("clicks"))
    assert (orders.group_name, clicks.group_name) == ("sales", "main")
    assert (orders.owners, orders.description) == (["team:data"], "All orders.")
    assert orders.tags.items() >= {"pii": "yes"}.items()
    assert (orders.kinds, clicks.kinds) == ({"kafka", "deltalake"},) * 2  # fault F17
    sources = {name: graph.get(dg.AssetKey(["kafka", "main", name])).group_name for name in ("orders", "clicks")}
    # The graph shows only the last part of a key, which a topic and its table share, and the name of the group.
    assert sources == {"orders": "kafka_sales", "clicks": "kafka_main"}  # fault F17
    assert orders.automation_condition == dg.AutomationCondition.eager()
    assert clicks.automation_condition is None
    assert orders.code_version != clicks.code_version
    assert orders.metadata["dagster/uri"] == "/lake/main/orders"
    assert (orders.metadata["dagster/table_name"], orders.metadata["penstock/topic"]) == ("/lake/main/orders", "orders")
    blocking = {(check.asset_key, check.name) for check in graph.asset_check_keys if graph.get(check).blocking}
    assert {asset for asset, _ in blocking} == {key("orders")}
    assert (key("orders"), "schema_changes") in blocking


# fault E18
def test_no_two_tables_have_the_same_name_in_one_code_location() -> None:
    """Dagster's page links tables with the same name, whose letters it makes lower-case."""
    clusters = {"main": {"bootstrap": "b:9"}, "main-sales": {"bootstrap": "b:9"}}
    definitions = [
        defs_of("orders", "Orders", "sales.orders", name=name, key_prefix=(name,), settings=settings)
        for name in ("first", "second")
        for settings in [Settings.model_validate({"lake": f"/lakes/{name}", "clusters": clusters})]
    ]
    specs = dg.Definitions.merge(*definitions).resolve_all_asset_specs()
    names = [spec.metadata.get("dagster/table_name", "").lower() for spec in specs if "deltalake" in spec.kinds]
    assert len(set(names)) == len(names) == 2 * 2 * 3


def test_old_names_of_settings_are_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    old = {"lake": "lake", "clusters": {"main": {"bootstrap": "b:9092"}}, "groups": {"pages": {"topics": "views"}}}
    defs = build_defs(old)
    assert "load__main__pages" in {schedule.name for schedule in defs.get_repository_def().schedule_defs}
    assert "groups is the old name of schedules: rename it in the settings" in caplog.text


def test_the_old_name_of_the_schedule_of_a_topic_can_be_used() -> None:
    topic = TopicProps(cluster="main", name="clicks", schedule="pages")
    with pytest.warns(FutureWarning, match="its `schedule`"):
        assert topic.group == "pages"


class InSnowfall(PenstockTranslator):
    """A translator as a user writes it."""

    def get_asset_spec(self, topic: TopicProps) -> dg.AssetSpec:
        """Another key and another asset group."""
        spec = super().get_asset_spec(topic)
        return spec.replace_attributes(key=["snow", topic.name.upper()], group_name="snowfall")


def test_a_translator_decides_about_the_spec() -> None:
    graph = defs_of("orders", translator=InSnowfall()).resolve_asset_graph()
    node = graph.get(dg.AssetKey(["snow", "ORDERS"]))
    assert node.group_name == "snowfall"
    assert node.parent_keys == {dg.AssetKey(["kafka", "main", "orders"])}


def test_several_definitions_fit_into_a_project_that_has_its_own_of_everything() -> None:
    @dg.asset
    def own(spark: dg.ResourceParam[str]) -> None:
        assert spark

    class Broken(dg.IOManager):
        """An IO manager that our runs must not use."""

        def load_input(self, context: dg.InputContext) -> object:
            raise NotImplementedError

        def handle_output(self, context: dg.OutputContext, obj: object) -> None:
            raise NotImplementedError

    resources = {"spark": "own", "penstock": "own", "kafka": "own", "lake": "own", "io_manager": Broken()}
    project = dg.Definitions(assets=[own], resources=resources, executor=dg.multiprocess_executor)
    ours = defs_of("clicks"), defs_of("views", name="second")
    merged = dg.Definitions.merge(project, *ours)
    dg.Definitions.validate_loadable(merged)
    assert {key("clicks"), key("views")} <= merged.resolve_asset_graph().get_all_asset_keys()
    assert {sensor.name for sensor in merged.get_repository_def().sensor_defs} == {
        "new_topics__main",
        "new_topics__main__second",
        "lost_runs",
        "lost_runs__second",
    }


def test_the_topics_of_other_definitions_are_not_there() -> None:
    graph = defs_of("clicks", "views", patterns=("v.*",), key_prefix=("raw", "kafka")).resolve_asset_graph()
    assert [asset for asset in graph.get_all_asset_keys() if asset.path[0] == "raw"] == [
        dg.AssetKey(["raw", "kafka", "main", "views"])
    ]


def test_runs_and_ticks_use_the_settings_that_definitions_were_built_from(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # audit E6
    text = 'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n[caps]\nattempts = 1\n'
    (tmp_path / "penstock.toml").write_text(text)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    defs = build_defs("penstock.toml")
    monkeypatch.chdir("/")
    monkeypatch.setenv(PATH_VARIABLE, "/nowhere/penstock.toml")
    sensor = defs.resolve_sensor_def("new_topics__main")
    with (
        dg.build_sensor_context(instance=instance, definitions=defs) as context,
        pytest.raises(Exception, match=r"127\.0\.0\.1:1"),
    ):
        sensor.evaluate_tick(context)


def test_definitions_set_neither_an_executor_nor_resources() -> None:  # audit E6
    inline = {"lake": "lake", "clusters": {"main": {"bootstrap": "b:9092"}}}
    assert build_defs(inline).executor is None
    assert build_defs(inline).resources in (None, {})


def test_topics_that_the_instance_knows_are_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("penstock/main", ["clicks"])
    defs = build_defs({"lake": "/lake", "clusters": {"main": {"zookeeper": "127.0.0.1:1"}}})
    assert key("clicks") in defs.resolve_asset_graph().get_all_asset_keys()


def test_a_code_server_of_dagster_dev_gets_its_instance_as_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        instance.add_dynamic_partitions("penstock/main", ["clicks"])
        monkeypatch.setattr("sys.argv", ["dagster", "--instance-ref", serialize_value(instance.get_ref())])
    assert read_known("penstock", ["main"])["main"].names == ("clicks",)
    monkeypatch.setattr("sys.argv", ["dagster"])
    assert read_known("penstock", ["main"])["main"].names == ()


def test_more_topics_than_one_op_takes_are_cut_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.defs.catalog.catalog.MAX_TABLES_PER_ASSETS", 10)
    names = [f"topic-{number:03}" for number in range(25)]
    first, second = (
        {end: set(topics) for end, topics in next(topic_schedules(catalog(*some))).buckets()}
        for some in (names, names[::-1])
    )
    assert first == second
    assert first.keys() == {"__0", "__1", "__2"}
    assert set().union(*first.values()) == set(names)


@pytest.fixture
def validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], Result]:
    """A function that validates the workspace with the command of Dagster, for the text of a settings file."""
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    file = tmp_path / "penstock.toml"

    def validate(settings: str | None) -> Result:
        if settings is not None:
            file.write_text(settings)
        # This process runs other tests too, which may need pandas.
        monkeypatch.setattr(own_process, "declare", lambda: None)
        monkeypatch.delitem(sys.modules, "pipelines.definitions", raising=False)  # it reads the settings at its import
        command = ["definitions", "validate", "-w", str(ROOT / "workspace.yaml")]
        dagster_cli: click.Group = create_dagster_cli()  # type: ignore[no-untyped-call] # Dagster gives it no types
        environment = {PATH_VARIABLE: str(file), "DAGSTER_HOME": str(tmp_path)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Dagster warns of its own command
                return CliRunner().invoke(dagster_cli, command, env=environment)
        finally:
            os.environ.pop("DAGSTER_IS_DEFS_VALIDATION_CLI", None)  # the command sets it
            sys.modules.pop("pipelines.definitions", None)

    return validate


def test_the_workspace_loads_while_no_cluster_answers(validated: Callable[[str | None], Result]) -> None:
    loading = validated('lake = "lake"\n[clusters.main]\nzookeeper = "127.0.0.1:1"\n')
    assert loading.exit_code == 0, loading.output
    assert "Validation successful for code location penstock" in loading.output


@pytest.mark.slow
def test_our_own_code_location_has_no_pandas(tmp_path: Path) -> None:
    """The first array of pyarrow imports pandas, which takes longer than the load of a small topic."""
    file = tmp_path / "penstock.toml"
    file.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "b:9092"\n')
    code = "import sys, pipelines.definitions, pyarrow as pa; pa.array([1]); sys.exit(int('pandas' in sys.modules))"
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    assert subprocess.run(command, env={**environment, PATH_VARIABLE: str(file)}, check=False).returncode == 0


def test_missing_settings_fail_the_code_location_with_a_sentence(validated: Callable[[str | None], Result]) -> None:
    loading = validated(None)
    assert loading.exit_code != 0
    assert "there is no settings file" in loading.output
