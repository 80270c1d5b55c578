"""The jobs of a group: load, backfill, watch and verify."""

from typing import Any

import dagster as dg

from pipelines.defs.assets import SINCE_TAG
from pipelines.defs.checks import COVERAGE_CHECK
from pipelines.defs.topic_group import TopicGroup


def group_jobs(group: TopicGroup) -> dict[str, Any]:
    """The group's jobs by action. Dagster does not export the type of an unresolved asset job."""
    coverage = dg.AssetSelection.checks(dg.AssetCheckKey(group.tables, COVERAGE_CHECK))
    tables = dg.AssetSelection.assets(group.tables).without_checks()
    keeping_up = dg.AssetSelection.checks_for_assets(group.tables) - coverage
    jobs = {
        "load": (tables | coverage, {}, "Load what is new in the chosen topics, then verify their tables."),
        "backfill": (
            tables | coverage,
            # A tag, because Dagster passes the config of a partitioned job only to runs of one single partition.
            {SINCE_TAG: "earliest"},
            f"Load the chosen topics from the earliest offset of the brokers. Set the tag {SINCE_TAG} to start later.",
        ),
        "watch": (
            dg.AssetSelection.assets(group.topics) | keeping_up,
            {},
            "Observe every topic of the group: lag, freshness, and the time until retention removes records.",
        ),
        "verify": (coverage, {}, "Verify every table of the group."),
    }
    return {
        action: dg.define_asset_job(group.named(action), selection=selection, tags=tags, description=description)
        for action, (selection, tags, description) in jobs.items()
    }
