"""The schedule: one run over all that is known."""

from typing import Any

import dagster as dg

from pipelines.partitions import NAME, run_tags
from pipelines.schedules import every_topic


def fire(instance: dg.DagsterInstance) -> Any:
    with dg.build_schedule_context(instance=instance) as context:
        return every_topic.evaluate_tick(context)


def test_one_run_takes_every_topic_that_is_known(instance: dg.DagsterInstance) -> None:
    keys = ["main/z", "main/a", "old/b"]
    instance.add_dynamic_partitions(NAME, keys)
    (request,) = fire(instance).run_requests
    assert run_tags(keys).items() <= request.tags.items()


def test_nothing_known_is_a_skip_that_says_who_adds_topics(instance: dg.DagsterInstance) -> None:
    found = fire(instance)
    assert not found.run_requests
    assert "new_topics" in found.skip_message
