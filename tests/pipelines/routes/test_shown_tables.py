"""What commands show of a topic with several tables: each table, and once what is about the topic."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import Result
from deltalake import DeltaTable

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import apply_increment
from pipelines.ledger.ledger import LedgerEntry
from pipelines.maintenance.rewind import plan_rewind, rewind
from tests.fakes.typed import TypedTopic
from tests.pipelines.reports.test_lineage import events_of
from tests.pipelines.routes.test_routed_load import append, batch, prove, table, topic
from tests.pipelines.routes.test_verify_tables import penstock, results

pytestmark = pytest.mark.slow  # each test fills a table and changes it

__all__ = ["penstock", "topic"]  # fixtures
Penstock = Callable[..., Result]
NAMES = ["clicks", "clicks/orders", "clicks/payments"]


def cells(result: Result) -> list[list[str]]:
    """The cells of each line."""
    return [line.split() for line in result.stdout.splitlines()]


def lags(penstock: Penstock) -> dict[str, int]:
    return {status["topic"]: status["lag"] for status in results(penstock("status", "--json"))}


def test_the_status_has_the_lag_of_a_topic_once(topic: TypedTopic, penstock: Penstock) -> None:
    assert topic.load().error is None
    append(topic, ["order", None])
    _, *tables, total = cells(penstock("status"))
    assert [line[1:7] for line in tables] == [
        ["clicks", "behind", "2", "-", *tables[0][5:7]],
        ["clicks/orders", "behind", "-", "-", "-", "-"],
        ["clicks/payments", "behind", "-", "-", "-", "-"],
    ]
    assert " ".join(total) == "1 topic, 2 further tables, 1 behind, lag 2 records"
    # Without its topic, a table has its own.
    _, alone, total = cells(penstock("status", "clicks/orders"))
    assert (alone[1:4], " ".join(total)) == (["clicks/orders", "behind", "2"], "1 topic, 1 behind, lag 2 records")
    assert [own["topic"] for own in json.loads(penstock("topics", "--json").stdout)["results"]] == ["clicks"]


def test_a_topic_is_behind_if_one_of_its_tables_is(topic: TypedTopic, penstock: Penstock) -> None:
    assert topic.load().error is None
    append(topic, ["order"])
    assert topic.load().error is None
    rewind(plan_rewind(table(topic, "orders"), 1, run="back"))
    assert lags(penstock) == {"clicks": 1, "clicks/orders": 1, "clicks/payments": 0}
    assert topic.load().error is None
    assert set(lags(penstock).values()) == {0}
    prove(topic)


def test_offsets_that_a_topic_has_lost_are_named_once(topic: TypedTopic, penstock: Penstock) -> None:
    assert topic.load().error is None
    append(topic, ["order", None, "order"])
    topic.fake.logs[0].start = 8
    result = penstock("status")
    assert result.exit_code == 1
    assert result.stderr.count("expired before they were loaded") == 1
    assert "`penstock load clicks --on-expired skip`" in result.stderr
    assert "`penstock load clicks --on-expired skip`" in penstock("status", "clicks/orders").stderr


def samples(penstock: Penstock, name: str) -> Sequence[str]:
    """The values of the label `topic` of a metric."""
    lines = [line for line in penstock("metrics").stdout.splitlines() if line.startswith(f"penstock_{name}{{")]
    return [line.partition('topic="')[2].partition('"')[0] for line in lines]


def test_metrics_have_each_table_and_once_what_is_about_the_topic(topic: TypedTopic, penstock: Penstock) -> None:
    assert topic.load().error is None
    assert samples(penstock, "table_rows") == samples(penstock, "last_load_rows") == NAMES
    assert samples(penstock, "lag_offsets") == samples(penstock, "topic_state") == ["clicks"]


Configure = Callable[[str, str], None]


@pytest.fixture
def configure(penstock: Penstock, tmp_path: Path) -> Configure:
    """A function that adds lines to the section of the topic, and sections, to the settings of the commands."""
    file = tmp_path / "penstock.toml"
    assert penstock is not None

    def write(lines: str, sections: str) -> None:
        of_topic = '[topics.clicks]\nformat = "json"\n'
        file.write_text(file.read_text().replace(of_topic, f"{of_topic}{lines}\n") + sections)

    return write


def test_each_table_has_its_own_valid_through_and_lateness(
    topic: TypedTopic, penstock: Penstock, configure: Configure
) -> None:
    assert topic.load().error is None
    unknown = penstock("complete", "clicks/orders", "--through", "2023-11-14")
    assert (unknown.exit_code, "in the section of the topic" in unknown.stderr) == (1, True)
    own = '[topics."clicks/orders"]\nformat = "json"\nevent_time = "timestamp"\nallowed_lateness_minutes = 60\n'
    configure('event_time = "timestamp"', own)
    append(topic, [None])
    assert penstock("load", "clicks").exit_code == 0
    completed = [results(penstock("complete", name, "--through", "2023-11-14", "--json"))[0] for name in NAMES]
    assert [(done["topic"], done["complete"], done["allowed_lateness_ms"]) for done in completed] == [
        ("clicks", True, 600_000),
        ("clicks/orders", True, 3_600_000),
        ("clicks/payments", True, 600_000),
    ]
    proven = {done["valid_through_ms"] + done["allowed_lateness_ms"] for done in completed}
    assert len(proven) == 1
    # A late record of one type is in the ledger of its table, and moves the time of no table.
    topic.fake.logs[0].entries += (late := batch(["order"], topic.fake.logs[0].end)).entries
    topic.fake.logs[0].end = late.end
    assert penstock("load", "clicks").exit_code == 0
    times = {name: entry_of(topic, name).event_time for name in NAMES}
    assert [bool(time and time.late) for time in times.values()] == [False, True, False]
    shown = {status["topic"]: status["valid_through_ms"] for status in results(penstock("status", "--json"))}
    assert shown == {name: time.valid_through_ms for name, time in times.items() if time}


def entry_of(topic: TypedTopic, name: str) -> LedgerEntry:
    """The newest entry of one of the tables."""
    snapshot = table(topic, name.partition("/")[2]).existing()
    assert snapshot is not None
    assert snapshot.entry is not None
    return snapshot.entry


def test_a_load_leads_from_the_topic_to_all_its_tables(
    topic: TypedTopic, penstock: Penstock, configure: Configure, tmp_path: Path
) -> None:
    configure("", f'[lineage]\nfile = "{tmp_path / "lineage.jsonl"}"\n')
    assert penstock("load", "clicks").exit_code == 0
    assert penstock("replay", "clicks/orders", "--from", "earliest", "--to", "latest").exit_code == 0
    _, load, _, replay = events_of(tmp_path / "lineage.jsonl")
    assert (load["job"]["name"], replay["job"]["name"]) == ("load.main.clicks", "replay.main.clicks/orders")
    [source], [of_replay] = load["inputs"], replay["inputs"]
    assert source["name"] == of_replay["name"] == "clicks"
    assert source["inputFacets"]["inputStatistics"]["rowCount"] == 6
    outputs = {output["name"].rpartition("/")[2]: output for output in load["outputs"]}
    assert list(outputs) == ["clicks", "clicks~2forders", "clicks~2fpayments"]
    assert {output["outputFacets"]["outputStatistics"]["rowCount"] for output in outputs.values()} == {2}
    columns = [{column["name"] for column in output["facets"]["schema"]["fields"]} for output in outputs.values()]
    assert ["order" in names for names in columns] == [False, True, False]


def test_a_load_writes_metrics_of_each_table_and_once_those_of_the_topic(
    topic: TypedTopic, penstock: Penstock, configure: Configure, tmp_path: Path
) -> None:
    (tmp_path / "metrics").mkdir()
    configure("", f'[metrics]\ntextfile_folder = "{tmp_path / "metrics"}"\n')
    assert penstock("load", "clicks").exit_code == 0
    text = "".join(file.read_text() for file in sorted((tmp_path / "metrics").iterdir()))
    assert [f'penstock_load_rows{{cluster="main",topic="{name}"}} 2.0' in text for name in NAMES] == [True] * 3
    for name in ("success", "duration_seconds", "bytes", "errors", "lag_offsets", "timestamp_seconds"):
        assert text.count(f"penstock_load_{name}{{") == 1


def test_a_table_is_the_source_of_increments_and_of_a_state_table(
    topic: TypedTopic, penstock: Penstock, configure: Configure, tmp_path: Path
) -> None:
    assert topic.load().error is None
    done = apply_increment(
        table(topic, "orders"),
        lambda rows: rows.arrow(["order"]),
        consumer="c",
        into=DeltaOutput(uri=str(tmp_path / "o")),
    )
    assert done is not None
    assert (done["source"], done["new"]) == ("main/clicks/orders", 6)
    assert DeltaTable(str(tmp_path / "o")).to_pyarrow_table().column("order").to_pylist() == [0, 3]
    configure("", '[topics."clicks/orders"]\nformat = "json"\n[topics."clicks/orders".state]\nkey = "order"\n')
    [state] = results(penstock("state", "clicks/orders", "--json"))
    assert (state["topic"], state["changed"]) == ("clicks/orders", 2)
    assert [state["topic"] for state in results(penstock("state", "--all", "--json"))] == ["clicks/orders"]
    [proof] = results(penstock("verify", "clicks/orders", "--json"))
    assert (proof["proven"], proof["state"]["keys"]) == (True, 2)
    of_topic = penstock("state", "clicks")
    assert (of_topic.exit_code, "the settings have no section [topics.clicks.state]" in of_topic.stderr) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("load", "clicks/orders"),
        ("tail", "clicks/orders"),
        ("publish", "clicks/orders", "-"),
        ("offsets", "import", "clicks/orders", "--from", "group:g"),
    ],
)
def test_commands_about_a_topic_say_so_if_a_table_is_named(penstock: Penstock, command: Sequence[str]) -> None:
    refused = penstock(*command)
    assert refused.exit_code == 2
    assert "no topic 'clicks/orders': it is the name of a table of the topic 'clicks'" in " ".join(
        refused.stderr.split()
    )
