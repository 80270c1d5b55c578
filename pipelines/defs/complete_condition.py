"""The automation condition of assets that follow complete hours or days."""

import dagster as dg


def on_complete_partitions() -> dg.AutomationCondition[dg.AssetKey]:
    """Requests each partition of an asset when the partitions that it depends on are complete, and after late rows.

    `AutomationCondition.eager()` looks only at the latest partition. So it misses all but one of several hours that
    become complete at once, and late rows of every earlier hour. It also forgets late rows that are reported while a
    run of their partition is in progress. This condition looks at all partitions, and requests such a partition again
    when the run has ended. Partitions that were complete before the asset got the condition are not requested: a
    backfill makes them.
    """
    condition = dg.AutomationCondition
    requested = condition.newly_requested() | condition.initial_evaluation()
    return (
        # With `updated.since(requested)`, an update that comes together with the request would be forgotten.
        ~requested.since(condition.any_deps_updated()).with_label("requested_since_any_deps_updated")
        & ~condition.any_deps_missing()
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    ).with_label("on_complete_partitions")
