"""Delete the runs of Dagster that ended before a number of days, with their event logs.

Run it once a day with DAGSTER_HOME set: python delete_old_runs.py 90
"""

import sys
from datetime import UTC, datetime, timedelta

import dagster as dg

AT_ONCE = 200
ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def delete_old_runs(instance: dg.DagsterInstance, days: float) -> int:
    """Delete the runs that ended earlier than so many days ago; returns their number."""
    old = dg.RunsFilter(statuses=ENDED, updated_before=datetime.now(UTC) - timedelta(days=days))
    deleted = 0
    while runs := instance.get_runs(filters=old, limit=AT_ONCE):
        for run in runs:
            instance.delete_run(run.run_id)
        deleted += len(runs)
    return deleted


if __name__ == "__main__":
    with dg.DagsterInstance.get() as configured:
        sys.stdout.write(f"runs deleted: {delete_old_runs(configured, float(sys.argv[1]))}\n")
