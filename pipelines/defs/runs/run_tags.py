"""The tags of runs: people see which topics a run loads; what only machines read is hidden."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from pipelines.defs.runs.run_liveness import WORKER_TAG, worker

TOPICS_TAG, CLUSTER_TAG = "topics", "cluster"
ATTEMPT_TAG = ".dagster/penstock_attempt"
"""How often the load of the topics of a run was tried before, by other runs. Dagster hides the tag."""
_SHOWN = 3
_MAX_CHARS = 24
"""Dagster's list of runs cuts off a tag that is longer than this and its short key (fault F17)."""

StepContext = dg.AssetExecutionContext | dg.AssetCheckExecutionContext | dg.OpExecutionContext


def topic_tags(cluster: str, topics: Collection[str]) -> dict[str, str]:
    """The visible tags of a run: its cluster, and its topics in a few words."""
    return {CLUSTER_TAG: cluster, TOPICS_TAG: _in_few_words(list(topics))}


def _in_few_words(names: Sequence[str]) -> str:
    """As many names as fit, and the number of the others. One name is always there, however long it is."""
    texts = [
        ", ".join(names[:count]) + (f" and {len(names) - count} more" if count < len(names) else "")
        for count in range(min(_SHOWN, len(names)), 0, -1)
    ]
    return next((text for text in texts if len(text) <= _MAX_CHARS), texts[-1] if texts else "")


@contextmanager
def tagged_run(context: StepContext, cluster: str, topics: Collection[str]) -> Iterator[None]:
    """Tag the run of a step with its topics, whoever launched it, and with its process.

    An executor that starts a process for each step continues the run after the step, so the tag of the process is
    emptied at the end. Otherwise the sensor of lost runs would fail a run whose next step is somebody else's.
    """
    tags = {**topic_tags(cluster, topics), WORKER_TAG: worker()}
    context.instance.add_run_tags(context.run.run_id, tags)
    yield
    if _has_other_processes(context):
        context.instance.add_run_tags(context.run.run_id, {WORKER_TAG: ""})


def _has_other_processes(context: StepContext) -> bool:
    op_context = context if isinstance(context, dg.OpExecutionContext) else context.op_execution_context
    return op_context.job_def.executor_def is not dg.in_process_executor
