"""The asset check: `verify`, as the command line runs it."""

from collections.abc import Iterable

import dagster as dg

from pipelines.assets import topic_table
from pipelines.loading.table import LakeTable
from pipelines.loading.verify import verify
from pipelines.partitions import parse_key
from pipelines.report import check_metadata
from resources.penstock import PenstockResource


# Without partitions of its own: Dagster 1.13 evaluates a partitioned check for one key or for none, so that a run over
# a range of topics would leave every topic's check as skipped.
@dg.asset_check(asset=topic_table)
def offsets_covered(context: dg.AssetCheckExecutionContext, penstock: PenstockResource) -> dg.AssetCheckResult:
    """Every committed offset is in its table exactly once: ranges without a hole, files there, rows counted.

    In a run that loads topics, their tables are verified; executed by itself, it verifies every table of the lake.
    """
    lake = penstock.lake()
    proofs = [verify(LakeTable.of(lake, cluster, topic)) for cluster, topic in _chosen(context, penstock)]
    failed = [proof.topic for proof in proofs if not proof.proven]
    return dg.AssetCheckResult(
        passed=not failed,
        description=f"not proven: {', '.join(failed)}" if failed else f"tables proven: {len(proofs)}",
        metadata=check_metadata(proofs),
    )


def _chosen(context: dg.AssetCheckExecutionContext, penstock: PenstockResource) -> Iterable[tuple[str, str]]:
    """Clusters and topics: those of the run, or all that have a table."""
    if context.has_partition_key or context.has_partition_key_range:
        return [parse_key(key) for key in context.partition_keys]
    lake = penstock.lake()
    return [(cluster, topic) for cluster in sorted(penstock.settings().clusters) for topic in lake.topics(cluster)]
