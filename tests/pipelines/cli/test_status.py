"""`penstock status` prints the most urgent topic first, and its exit code says whether a topic needs an operator."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_io.errors import Corrupt, Where
from kafka_io.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from pipelines.cli.main import main
from pipelines.cli.output import shown_status
from pipelines.ledger.failure import SliceFailure
from pipelines.reports.last_error import LastError, LastErrors
from pipelines.status.status import TopicState
from resources.stores.lake import Lake
from tests.fakes.cluster import FakeCluster
from tests.fakes.records import holding
from tests.kafka_io.testing.modern.talk import Client
from tests.pipelines.cli.broker_world import Make
from tests.pipelines.cli.walking import leads_on

DAY_MS = 86_400_000


def lines(result: Result) -> list[list[str]]:
    """The cells of each line."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in result.stdout.splitlines()]


def test_topics_that_are_behind_come_before_loaded_topics(make: Make) -> None:
    result = make(retention_ms=DAY_MS).penstock("status")
    assert (result.exit_code, result.stderr) == (0, "")
    header, views, clicks, total = lines(result)
    assert header == ["CLUSTER", "TOPIC", "STATE", "LAG", "LOST", "LATE", "LEFT", "LAST LOAD", "VERSION"]
    assert views[:7] == ["main", "views", "behind", "8", "-", "2 h 30 min", "21 h 29 min"]
    assert clicks[:7] == ["main", "clicks", "loaded", "0", "-", "-", "-"]
    assert views[8] == clicks[8] == "1"
    assert total == ["2 topics, 1 behind, 1 loaded, lag 8 records"]


def test_without_a_retention_limit_data_is_never_lost(make: Make) -> None:
    assert lines(make().penstock("status", "views"))[1][6] == "never"


def test_a_topic_that_is_losing_data_is_exit_code_1(make: Make) -> None:
    result = make(retention_ms=3_600_000).penstock("status")
    assert result.exit_code == 1
    assert lines(result)[1][:7] == ["main", "views", "losing", "8", "-", "2 h 30 min", "-1 h 30 min"]
    assert lines(result)[-1] == ["2 topics, 1 losing, 1 loaded, lag 8 records"]


def test_json_has_all_fields_of_the_status(make: Make) -> None:
    result = make(retention_ms=DAY_MS).penstock("status", "--json", "views", "clicks")
    views, clicks = json.loads(result.stdout)["results"]
    assert (views["topic"], views["state"], views["lag"]) == ("views", "behind", 8)
    assert views["kept"] == {"ms": DAY_MS, "by": "brokers"}
    assert 2.5 * 3600 <= views["late_s"] < 2.6 * 3600
    assert views["late_s"] + views["left_s"] == pytest.approx(DAY_MS / 1000)
    assert [(part["cursor"], part["latest"]) for part in clicks["partitions"]] == [(20, 20)]


def test_status_lists_new_topics_and_tables_without_topic_but_no_denied_topics(make: Make) -> None:
    world = make(settings_text='[topics]\ndeny = "secret.*"\n')
    world.publish("fresh")
    world.publish("secret")
    table = world.settings_file.parent / "lake" / "main" / "clicks"
    table.rename(table.with_name("former"))
    states = {line[1]: line[2] for line in lines(world.penstock("status"))[1:-1]}
    assert states == {"clicks": "new", "fresh": "new", "former": "gone", "views": "behind"}
    statuses = json.loads(world.penstock("topics", "--json").stdout)["results"]
    assert [status["topic"] for status in statuses] == ["clicks", "fresh", "views"]


def test_a_broken_table_is_an_error_and_does_not_affect_other_topics(make: Make) -> None:
    world = make()
    log = world.settings_file.parent / "lake" / "main" / "clicks" / "_delta_log"
    max(log.glob("*.json")).write_text("{")
    result = world.penstock("status")
    assert result.exit_code == 1
    assert [line[1:4] for line in lines(result)[1:-1]] == [["clicks", "error", "?"], ["views", "behind", "8"]]
    assert result.stderr.startswith("penstock: clicks: LogTorn: ")


def test_a_topic_whose_last_load_failed_is_an_error_until_a_load_succeeds(make: Make) -> None:  # fault U07
    world = make()
    where = Where(cluster="main", topic="views", partition="0", offset=12)
    failure = SliceFailure.of(Corrupt("a checksum is wrong"), where)
    last_errors = LastErrors(Lake(root=str(world.settings_file.parent / "lake")), "main")
    last_errors("views", LastError.of([failure], run="run", time_ms=int(time.time() * 1000) - 7_200_000))
    result = world.penstock("status")
    assert result.exit_code == 1
    assert [line[1:4] for line in lines(result)[1:-1]] == [["views", "error", "8"], ["clicks", "loaded", "0"]]
    assert result.stderr == f"penstock: views: the last load failed 2 h ago: {failure}\n{leads_on('PS-307')}"
    assert world.penstock("load", "views").exit_code == 0
    assert world.penstock("status").exit_code == 0


def test_offsets_that_expired_are_counted_and_the_command_that_continues_is_named(make: Make) -> None:  # fault U07
    world = make()
    partition = DeleteRecordsPartition(partition_index=0, offset=15)
    with Client(world.port) as client:
        topics = (DeleteRecordsTopic(name="views", partitions=(partition,)),)
        client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1))
    result = world.penstock("status")
    assert (result.exit_code, lines(result)[1][1:5]) == (1, ["views", "losing", "5", "3"])
    assert result.stderr == (
        "penstock: views: offsets [12, 15) of partition 0 expired before they were loaded; "
        "`penstock load views --on-expired skip` records them as a gap and continues (PS-301)\n" + leads_on("PS-301")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("load", "click"), "the cluster main has no topic 'click'; did you mean 'clicks'?"),
        (("load", "clicks", "secret"), "the settings do not allow the topic 'secret'"),  # fault U06
        (("clean", "view"), "the topic 'view' has no table; did you mean 'views'?"),
        (("verify", "view"), "the topic 'view' has no table; did you mean 'views'?"),
        (("history", "view"), "the topic 'view' has no table; did you mean 'views'?"),
        (("rewind", "view", "--version", "0"), "the topic 'view' has no table; did you mean 'views'?"),
        (("replay", "view", "--from", "-1h", "--to", "latest"), "the topic 'view' has no table; did you mean 'views'?"),
        (("offsets", "export", "view"), "the topic 'view' has no table; did you mean 'views'?"),
        (("offsets", "import", "view", "--from", "group:g"), "the cluster main has no topic 'view'; did you mean"),
        (("offsets", "import", "secret", "--from", "group:g"), "the settings do not allow the topic 'secret'"),
        (("status", "view"), "neither the cluster main nor the lake has a topic 'view'; did you mean 'views'?"),
        (("tail", "view"), "the cluster has no topic 'view'; did you mean 'views'?"),
    ],
)
def test_what_does_not_exist_or_is_not_allowed_is_wrong_use(
    arguments: tuple[str, ...], message: str, make: Make
) -> None:  # fault U10
    world = make(settings_text='[topics]\ndeny = "secret.*"\n')
    world.publish("secret")
    result = world.penstock(*arguments)
    assert (result.exit_code, message in " ".join(result.stderr.split())) == (2, True), result.stderr
    assert sorted(path.name for path in (world.settings_file.parent / "lake" / "main").iterdir()) == ["clicks", "views"]


def test_a_topic_that_is_named_twice_is_loaded_once(make: Make) -> None:  # fault U10
    loads = json.loads(make().penstock("load", "views", "views", "--json").stdout)["results"]
    assert [load["topic"] for load in loads] == ["views"]


def test_a_load_of_nothing_says_so(make: Make) -> None:  # fault U10
    result = make(settings_text='[topics]\nallow = "none"\n').penstock("load", "--all")
    assert result.exit_code == 0
    assert "nothing to load: the settings allow none of the 2 topics of the cluster main" in result.stderr


def test_topics_shows_offsets_and_lag(make: Make) -> None:
    _, clicks, views = lines(make().penstock("topics"))
    assert clicks[:6] == ["main", "clicks", "1", "20 records", "20", "0"]
    assert views[:6] == ["main", "views", "1", "20 records", "12", "8"]


def test_a_cluster_without_topics_is_printed_as_zero_topics(tmp_path: Path) -> None:
    config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")
    with ModernBrokerServer(config) as server:
        settings = tmp_path / "penstock.toml"
        settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{server.port}"\n')
        result = CliRunner().invoke(main, ["--settings", str(settings), "status"])
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "0 topics")


def test_a_cluster_whose_topics_have_no_id_is_mentioned_once(tmp_path: Path) -> None:  # fault P08
    file = tmp_path / "penstock.toml"
    with FakeCluster(logs={0: holding(0, 5)}) as fake:
        bootstrap = ",".join(broker.address for broker in fake.bootstrap)
        file.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "{bootstrap}"\n')
        for_people = CliRunner().invoke(main, ["--settings", str(file), "status"])
        for_scripts = CliRunner().invoke(main, ["--settings", str(file), "status", "--json"])
    assert for_people.stderr == (
        "warning: main: 1 of its topics have no id, so only leader epochs and the last loaded messages show that a "
        "topic was created again: set zookeeper too\n"
    )
    assert [status["has_id"] for status in json.loads(for_scripts.stdout)["results"]] == [False]


def test_every_state_has_a_colour() -> None:
    assert list(shown_status._STATES) == list(TopicState)
