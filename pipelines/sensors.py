"""The sensor: a topic that appears in ZooKeeper's registry becomes a partition, and a run is asked for."""

import hashlib
from collections.abc import Mapping

import dagster as dg

from kafka_io.errors import KafkaIOError
from pipelines.jobs import load_topics
from pipelines.partitions import key_of, known_keys, run_tags, topics
from resources.penstock import PenstockResource
from resources.settings import SettingsError

MOST_PER_TICK = 500
MOST_PER_RUN = 50


@dg.sensor(
    job=load_topics,
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds topics that are new in the registries, and loads them.",
)
def new_topics(context: dg.SensorEvaluationContext, penstock: PenstockResource) -> dg.SensorResult | dg.SkipReason:
    """Compare the registries with the partitions Dagster knows, afresh each tick; what is missing is new.

    No cursor is kept, so none can be lost or go stale. Dagster adds the partitions before it asks for the runs: a tick
    that died before is repeated, under the same run keys (O01); after one that died between, the schedule loads the
    topics. A topic that vanishes leaves its partition and table alone. A registry without an answer is an error, never
    an empty list.
    """
    found, silent = _registered(context, penstock)
    known = set(known_keys(context.instance))
    keys = [key for key in found if key not in known][:MOST_PER_TICK]
    if not keys:
        if silent:
            raise dg.Failure(f"no answer from {'; '.join(silent)}")
        return dg.SkipReason(f"no new topic; topics in the registries: {len(found)}")
    return dg.SensorResult(
        dynamic_partitions_requests=[topics.build_add_request(keys)],
        run_requests=[_request(keys[at : at + MOST_PER_RUN], found) for at in range(0, len(keys), MOST_PER_RUN)],
    )


def _registered(context: dg.SensorEvaluationContext, penstock: PenstockResource) -> tuple[dict[str, str], list[str]]:
    """Incarnations by partition key, and the clusters whose registry gives no answer, each with its reason."""
    found: dict[str, str] = {}
    silent = []
    for cluster in sorted(penstock.settings().clusters):
        try:
            entries = penstock.topics(cluster)
        except (KafkaIOError, SettingsError) as error:
            silent.append(f"{cluster}: {error}")
            context.log.warning("cluster %s was passed over: %s", cluster, error)
        else:
            # A topic none of whose brokers is up has nothing to load yet (Z07).
            found |= {key_of(cluster, one.name): one.incarnation for one in entries if one.partitions}
    return found, silent


def _request(keys: list[str], incarnations: Mapping[str, str]) -> dg.RunRequest:
    """One run over `keys`. Its key holds their incarnations: a topic made anew is asked for again (O02)."""
    exact = repr([(key, incarnations[key]) for key in keys]).encode()
    run_key = f"{keys[0]} to {keys[-1]}: {len(keys)} new, {hashlib.sha256(exact).hexdigest()[:16]}"
    return dg.RunRequest(run_key=run_key, tags=run_tags(keys))
