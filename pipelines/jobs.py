"""Jobs on the asset and its check: going on from the cursors, and filling in what lies before them. And replays."""

import dagster as dg

from pipelines.assets import FROM_EARLIEST_TAG
from pipelines.ops import replay_interval

_SELECTION = dg.AssetSelection.assets("topic_table")  # with its checks

load_topics = dg.define_asset_job(
    "load_topics",
    selection=_SELECTION,
    description="Load what is new of the chosen topics, then verify their tables.",
)

backfill_from_earliest = dg.define_asset_job(
    "backfill_from_earliest",
    selection=_SELECTION,
    # A tag, for Dagster gives a partitioned job's config to runs of one partition only, not to a range of them.
    tags={FROM_EARLIEST_TAG: "true"},
    description="Load the chosen topics from the earliest offset their brokers hold, and go on to the newest.",
)


@dg.job
def replay_topic() -> None:
    """Fetch an interval of one topic again, and put its rows in the place of those that its table has."""
    replay_interval()
