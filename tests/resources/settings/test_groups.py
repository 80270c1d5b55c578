"""Groups of topics: each topic belongs to one group, and Dagster can distinguish the names of groups."""

import pytest
from pydantic import ValidationError

from resources.settings.groups import REST, GroupLimits, TopicGroupSettings
from resources.settings.settings import ClusterSettings, Settings


def settings(**fields: object) -> Settings:
    clusters = {name: ClusterSettings(zookeeper="z:2181") for name in ("new", "old")}
    return Settings.model_validate({"lake": "/lake", "clusters": clusters, **fields})


GROUPED = settings(
    cron="0 * * * *",
    limits={"late_minutes": 10},
    groups={
        "billing": {"topics": ["bill.*", "money"], "cron": "*/5 * * * *"},
        "logs": {"topics": ".*log", "clusters": ["old"], "limits": {"lag": 7}},
    },
)


@pytest.mark.parametrize(
    ("cluster", "topic", "group"),
    [
        ("new", "bill.a", "billing"),
        ("new", "a.bill", REST),
        ("old", "bill.log", "billing"),
        ("old", "web.log", "logs"),
        ("new", "web.log", REST),
        ("old", "clicks", REST),
    ],
)
def test_a_topic_belongs_to_the_first_group_that_matches_its_whole_name(cluster: str, topic: str, group: str) -> None:
    assert GROUPED.group_of(cluster, topic) == group


def test_a_cluster_has_the_groups_that_can_contain_its_topics() -> None:
    assert GROUPED.groups_of("old") == ["billing", "logs", REST]
    assert GROUPED.groups_of("new") == ["billing", REST]


def test_a_group_inherits_missing_values_from_the_top_of_the_file() -> None:
    assert (GROUPED.timing_of("billing").cron, GROUPED.timing_of("billing").limits) == (
        "*/5 * * * *",
        GroupLimits(late_minutes=10),
    )
    assert (GROUPED.timing_of("logs").cron, GROUPED.timing_of("logs").limits) == ("0 * * * *", GroupLimits(lag=7))
    assert GROUPED.timing_of(REST).cron == "0 * * * *"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": {"a-b": {"topics": "x"}, "a_b": {"topics": "y"}}}, "the names a-b and a_b differ only by - and _"),
        ({"groups": {"a__b": {"topics": "x"}}}, "groups.a__b: a name has"),
        ({"groups": {"A": {"topics": "x"}}}, "groups.A: a name has"),
        ({"groups": {REST: {"topics": "x"}}}, "groups.topics: this name is reserved"),
        ({"groups": {"a": {"topics": "x", "clusters": "other"}}}, "groups.a.clusters: there is no cluster 'other'"),
        ({"groups": {"a": {"topics": []}}}, "at least 1 item"),
        ({"groups": {"a": {"topics": "("}}}, "is not a regular expression"),
        ({"limits": {"retention_left": 1.5}}, "less than or equal to 1"),
    ],
)
def test_invalid_groups_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        settings(**fields)
    assert message in str(raised.value)


def test_a_group_without_clusters_belongs_to_all_clusters() -> None:
    assert TopicGroupSettings(topics=("a",)).takes_cluster("any")
    assert not TopicGroupSettings(topics=("a",), clusters=("old",)).takes("new", "a")
