"""Schedules: each topic belongs to one schedule, and Dagster can distinguish the names of schedules."""

import pytest
from pydantic import ValidationError

from resources.settings.schedules import REST, CheckLimits, ScheduleSettings
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
