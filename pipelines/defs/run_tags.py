"""The tags of runs: people see which topics a run loads; what only machines read is hidden."""

from collections.abc import Collection

import dagster as dg

from pipelines.defs.run_liveness import WORKER_TAG, worker

TOPICS_TAG, CLUSTER_TAG = "penstock/topics", "penstock/cluster"
_SHOWN = 3

StepContext = dg.AssetExecutionContext | dg.AssetCheckExecutionContext | dg.OpExecutionContext


def topics_text(topics: Collection[str]) -> str:
    """The topics of a run in a few words."""
    first = ", ".join(list(topics)[:_SHOWN])
    others = len(topics) - _SHOWN
    return f"{first} and {others} more" if others > 0 else first


def topic_tags(cluster: str, topics: Collection[str]) -> dict[str, str]:
    """The visible tags of a run."""
    return {CLUSTER_TAG: cluster, TOPICS_TAG: topics_text(topics)}


def tag_run(context: StepContext, cluster: str, topics: Collection[str]) -> None:
    """Tag the run of a step with its topics, whoever launched it, and with its process."""
    tags = {**topic_tags(cluster, topics), WORKER_TAG: worker()}
    context.instance.add_run_tags(context.run.run_id, tags)
