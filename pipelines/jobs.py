"""The jobs of a group: going on from the cursors, filling in what lies before, looking at topics, verifying tables."""

from typing import Any

import dagster as dg

from pipelines.assets import SINCE_TAG
from pipelines.checks import COVERED
from pipelines.group import TopicGroup


def group_jobs(group: TopicGroup) -> dict[str, Any]:
    """All of them, by what they do. Dagster does not export their type."""
    covered = dg.AssetSelection.checks(dg.AssetCheckKey(group.tables, COVERED))
    tables = dg.AssetSelection.assets(group.tables).without_checks()
    keeping_up = dg.AssetSelection.checks_for_assets(group.tables) - covered
    told = {
        "load": (tables | covered, {}, "Load what is new of the chosen topics, then verify their tables."),
        "backfill": (
            tables | covered,
            # A tag, for Dagster gives a partitioned job's config to runs of one partition only, not to a range of them.
            {SINCE_TAG: "earliest"},
            f"Load the chosen topics from the earliest offset on, or or from what the tag {SINCE_TAG} says.",
        ),
        "watch": (
            dg.AssetSelection.assets(group.topics) | keeping_up,
            {},
            "Look at every topic of the group: lag, freshness, and the race with retention.",
        ),
        "verify": (covered, {}, "Verify every table of the group."),
    }
    return {
        what: dg.define_asset_job(group.named(what), selection=selection, tags=tags, description=description)
        for what, (selection, tags, description) in told.items()
    }
