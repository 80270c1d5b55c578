"""Replays, redecodes and rewrites that are reported as OpenLineage events if the settings ask for it."""

from typing import TYPE_CHECKING

from pipelines.load.run import Run
from pipelines.reports.lineage_events import DatasetName
from pipelines.reports.lineage_jobs import JobLineage, JobReport
from pipelines.rewrites.replay import replay
from pipelines.rewrites.replay_request import ReplayRequest
from pipelines.rewrites.replay_result import TopicReplay
from pipelines.table.lake_table import LakeTable
from resources.progress import Progress

if TYPE_CHECKING:
    from pipelines.rewrites.redecode import RedecodeRequest
    from pipelines.rewrites.redecode_result import TopicRedecode
    from pipelines.rewrites.rewrite import RewriteRequest
    from pipelines.rewrites.rewrite_result import TopicRewrite


def reported_replay(
    lineage: JobLineage, run: Run, table: LakeTable, request: ReplayRequest, on_progress: Progress
) -> TopicReplay:
    """Replay what is requested; see `replay`. The job leads from the topic to its table."""
    with lineage.job("REPLAY", request.topic, lineage.topic(request.topic)) as report:
        result = replay(run, table, request, on_progress)
        _report(report, result, result.rows if result.changed else 0)
    return result


def reported_redecode(lineage: JobLineage, request: "RedecodeRequest", *, every: bool = False) -> "TopicRedecode":
    """Decode bad records again, or all records of a raw table; see `redecode` and `convert_table`.

    The table is the source of the job and its output. A dry run is not reported, because it changes nothing.
    """
    # Processes of Dagster replay, and never decode again.
    from pipelines.rewrites.convert import convert_table  # noqa: PLC0415
    from pipelines.rewrites.redecode import redecode  # noqa: PLC0415

    decode = convert_table if every else redecode
    if request.dry_run:
        return decode(request)
    with lineage.job("REDECODE", request.table.where.topic or "", DatasetName.of_table(request.table.uri)) as report:
        result = decode(request)
        _report(report, result, result.decoded)
    return result


def reported_rewrite(lineage: JobLineage, request: "RewriteRequest") -> "TopicRewrite":
    """Store all rows of a table again by the rules of the settings; see `rewrite`.

    The table is the source of the job and its output. A dry run is not reported, because it changes nothing.
    """
    from pipelines.rewrites.rewrite import rewrite  # noqa: PLC0415 - as above

    if request.dry_run:
        return rewrite(request)
    with lineage.job("REWRITE", request.table.where.topic or "", DatasetName.of_table(request.table.uri)) as report:
        result = rewrite(request)
        _report(report, result, result.rows)
    return result


def _report(report: JobReport | None, result: "TopicReplay | TopicRedecode | TopicRewrite", rows: int) -> None:
    if report is not None:
        report.failed(result.failure)
        if result.version is not None:
            report.wrote_table(result.table, rows=rows, version=result.version)
