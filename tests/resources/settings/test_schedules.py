"""Schedules: each topic belongs to one schedule, and Dagster can distinguish the names of schedules."""

import itertools
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from dagster._utils.schedules import has_out_of_range_cron_interval, is_valid_cron_string
from pydantic import ValidationError

from pipelines.cli.main import main
from resources.explanations.explanation import ExitCode
from resources.settings.schedules import REST, CheckLimits, ScheduleSettings, check_cron
from resources.settings.settings import ClusterSettings, Settings


def settings(**fields: object) -> Settings:
    clusters = {name: ClusterSettings(zookeeper="z:2181") for name in ("new", "old")}
    return Settings.model_validate({"lake": "/lake", "clusters": clusters, **fields})


SCHEDULED = settings(
    cron="0 * * * *",
    limits={"late_minutes": 10},
    schedules={
        "billing": {"topics": ["bill.*", "money"], "cron": "*/5 * * * *"},
        "logs": {"topics": ".*log", "clusters": ["old"], "limits": {"lag": 7}},
    },
)


@pytest.mark.parametrize(
    ("cluster", "topic", "schedule"),
    [
        ("new", "bill.a", "billing"),
        ("new", "a.bill", REST),
        ("old", "bill.log", "billing"),
        ("old", "web.log", "logs"),
        ("new", "web.log", REST),
        ("old", "clicks", REST),
    ],
)
def test_a_topic_belongs_to_the_first_schedule_that_matches_its_whole_name(
    cluster: str, topic: str, schedule: str
) -> None:
    assert SCHEDULED.schedule_of(cluster, topic) == schedule


def test_a_cluster_has_the_schedules_that_can_contain_its_topics() -> None:
    assert SCHEDULED.schedules_of("old") == ["billing", "logs", REST]
    assert SCHEDULED.schedules_of("new") == ["billing", REST]


def test_a_schedule_inherits_missing_values_from_the_top_of_the_file() -> None:
    assert (SCHEDULED.timing_of("billing").cron, SCHEDULED.timing_of("billing").limits) == (
        "*/5 * * * *",
        CheckLimits(late_minutes=10),
    )
    assert (SCHEDULED.timing_of("logs").cron, SCHEDULED.timing_of("logs").limits) == ("0 * * * *", CheckLimits(lag=7))
    assert SCHEDULED.timing_of(REST).cron == "0 * * * *"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"schedules": {"a-b": {"topics": "x"}, "a_b": {"topics": "y"}}},
            "the names a-b and a_b differ only by - and _",
        ),
        ({"schedules": {"a__b": {"topics": "x"}}}, "schedules.a__b: a name has"),
        ({"schedules": {"A": {"topics": "x"}}}, "schedules.A: a name has"),
        ({"schedules": {REST: {"topics": "x"}}}, "schedules.topics: this name is reserved"),
        (
            {"schedules": {"a": {"topics": "x", "clusters": "other"}}},
            "schedules.a.clusters: there is no cluster 'other'",
        ),
        ({"schedules": {"a": {"topics": []}}}, "at least 1 item"),
        ({"schedules": {"a": {"topics": "("}}}, "is not a regular expression"),
        ({"limits": {"retention_left": 1.5}}, "less than or equal to 1"),
    ],
)
def test_invalid_schedules_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        settings(**fields)
    assert message in str(raised.value)


def test_a_schedule_without_clusters_belongs_to_all_clusters() -> None:
    assert ScheduleSettings(topics=("a",)).takes_cluster("any")
    assert not ScheduleSettings(topics=("a",), clusters=("old",)).takes("new", "a")


CRONS = """* * * * *|*/15 * * * *|0 0 1 1 *|17 3 * * *|0-30/5 1,2,3 * * mon-fri|@hourly|@Daily|0 0 l * *
0 0 ? * 7|0 0 * jan-mar/2 sun|0 0 * * mon#2|0 0 * * 5#1|0 0 * * l5|5/15 * * * *|0 22-2 * * *
0 0 29 2 *|  0   0 * * *|0 0 * * 0-7|0 0 */31 * *|0 0 * */12 *|every minute|*/61 * * * *|60 * * * *
* 24 * * *|* * 0 * *|* * 32 * *|* * * 13 *|* * * 0 *|* * * * 8|* * * *|* * * * * *||0 0 30 2 *
0 0 31 feb *|*/0 * * * *|-5 * * * *|1- * * * *|1-2-3 * * * *|a * * * *|mon * * * *|* * * mon *
@never|* * * * mon#6|* */25 * * *|* * */32 * *|* * * */13 *|1,,2 * * * *|, * * * *|*/x * * * *
1#2 * * * *|? * * * *|l * * * *|0 0 * * 1/8|* * * * */8""".replace("\n", "|").split("|")


def accepts(text: str) -> bool:
    try:
        check_cron(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("text", sorted(set(CRONS)))
def test_a_cron_expression_is_accepted_where_dagster_accepts_it(text: str) -> None:  # fault F05
    expected = is_valid_cron_string(text) and not has_out_of_range_cron_interval(text)
    assert accepts(text) == expected


@pytest.mark.slow
def test_dagster_accepts_whatever_the_settings_accept() -> None:  # fault F05
    drawn = random.Random(5)
    numbers = ["*", "?", "l", "l3", "mon", "jan", *map(str, range(0, 62, 3)), "7", "12", "31"]
    terms = [*numbers, *(f"{low}-{high}" for low, high in itertools.product(numbers[2:], repeat=2))]
    terms += [f"{term}/{step}" for term in terms for step in (0, 1, 5, 7, 8, 12, 31, 60)] + ["fri#2", "1#5", "3-5#1"]
    accepted = 0
    for position in range(5):
        for term in drawn.sample(terms, 1500):
            text = " ".join(["0", "0", "*", "*", "*"][:position] + [term] + ["*"] * (4 - position))
            if accepts(text):
                accepted += 1
                assert is_valid_cron_string(text), text
    assert accepted > 500


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ('cron = "every minute"', "cron"),
        ('cron = "*/61 * * * *"', "cron"),
        ('watch_cron = "x"', "watch_cron"),
        ('verify_cron = "x"', "verify_cron"),
        ('[schedules.night]\ntopics = ["a"]\ncron = "x"', "schedules.night.cron"),
        ('[topics.clicks]\nautomation = "on_cron: x"', "topics.clicks.automation"),
    ],
)
@pytest.mark.parametrize("command", [("status",), ("load", "--all"), ("config", "check")])
def test_all_commands_refuse_a_wrong_cron_expression(
    command: tuple[str, ...], lines: str, place: str, tmp_path: Path
) -> None:  # fault F05
    settings = tmp_path / "penstock.toml"
    head, section, tail = lines.partition("[")
    settings.write_text(f'lake = "lake"\n{head}\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n{section}{tail}')
    result = CliRunner().invoke(main, ["--settings", str(settings), *command])
    assert (result.exit_code, f": {place}: " in result.stderr + result.stdout) == (
        ExitCode.WRONG_USE,
        True,
    ), result.output
