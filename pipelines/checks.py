"""The asset check: `verify`, as the command line runs it."""

import dagster as dg

from pipelines.assets import topic_table
from pipelines.loading.verify import verify
from pipelines.partitions import parse_key, topics
from pipelines.report import check_metadata
from resources.penstock import PenstockResource


@dg.asset_check(asset=topic_table, partitions_def=topics)
def offsets_covered(context: dg.AssetCheckExecutionContext, penstock: PenstockResource) -> dg.AssetCheckResult:
    """Every committed offset is in its table exactly once: ranges without a hole, files there, rows counted."""
    lake = penstock.lake()
    keys = [parse_key(key) for key in context.partition_keys]
    proofs = [verify(lake, topic, lake.table_uri(cluster, topic)) for cluster, topic in keys]
    failed = [proof.topic for proof in proofs if not proof.proven]
    return dg.AssetCheckResult(
        passed=not failed,
        description=f"not proven: {', '.join(failed)}" if failed else f"{len(proofs)} tables proven",
        metadata=check_metadata(proofs),
    )
