"""Increments that are reported as OpenLineage events if the settings ask for it."""

from collections.abc import Mapping
from typing import Any

from pipelines.increments.delta_output import DeltaOutput
from pipelines.increments.increment import Transform, apply_increment
from pipelines.increments.output import IncrementOutput, NamedOutput
from pipelines.loading.lineage_events import DatasetName
from pipelines.loading.lineage_jobs import JobLineage, JobReport
from pipelines.loading.table import LakeTable


def reported_increment(
    lineage: JobLineage,
    table: LakeTable,
    transform: Transform,
    *,
    consumer: str,
    into: IncrementOutput,
    **options: Any,
) -> Mapping[str, Any] | None:
    """Apply the next increment; see `apply_increment`. The job leads from the topic's table to the output."""
    source = DatasetName.of_table(table.uri)
    with lineage.job("INCREMENT", table.where.topic or "", source, consumer) as report:
        summary = apply_increment(table, transform, consumer=consumer, into=into, **options)
        if report is not None and summary is not None:
            report.read(summary["version"])
            _wrote(report, into)
    return summary


def _wrote(report: JobReport, output: IncrementOutput) -> None:
    """Name the output in the report; an output of another program may have no name."""
    if isinstance(output, DeltaOutput):
        report.wrote_table(output.uri, options=output.options)
    elif isinstance(output, NamedOutput):
        report.wrote(output.dataset)
