"""The sensor: a topic that appears in ZooKeeper's registry becomes a partition, and a run is asked for."""

import dagster as dg

from kafka_io.errors import KafkaIOError
from pipelines.jobs import load_topics
from pipelines.partitions import key_of, known_keys, run_tags, topics
from resources.penstock import PenstockResource

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

    No cursor is kept, so none can be lost or go stale: a tick that died before its partitions were added is repeated,
    and the run key, which holds the topic's incarnation, keeps its run from being asked for twice (O01, O02). A topic
    that vanishes leaves its partition and table alone. A registry without an answer is an error, never an empty list.
    """
    known = set(known_keys(context.instance))
    fresh: dict[str, str] = {}
    silent = []
    for cluster in sorted(penstock.settings().clusters):
        try:
            found = penstock.topics(cluster)
        except KafkaIOError as error:
            silent.append(f"{cluster}: {error}")
            context.log.warning("cluster %s was passed over: %s", cluster, error)
            continue
        # A topic none of whose brokers is up has nothing to load yet (Z07).
        fresh |= {key_of(cluster, one.name): one.incarnation for one in found if one.partitions}
    keys = [key for key in fresh if key not in known][:MOST_PER_TICK]
    if not keys:
        if silent:
            raise dg.Failure(f"no answer from {'; '.join(silent)}")
        return dg.SkipReason(f"no new topic; {len(fresh)} topics are in the registries")
    return dg.SensorResult(
        dynamic_partitions_requests=[topics.build_add_request(keys)],
        run_requests=[_request(keys[at : at + MOST_PER_RUN], fresh) for at in range(0, len(keys), MOST_PER_RUN)],
    )


def _request(keys: list[str], incarnations: dict[str, str]) -> dg.RunRequest:
    run_key = f"new:{keys[0]}@{incarnations[keys[0]]}:{keys[-1]}@{incarnations[keys[-1]]}:{len(keys)}"
    if len(keys) == 1:
        return dg.RunRequest(run_key=run_key, partition_key=keys[0])
    return dg.RunRequest(run_key=run_key, tags=run_tags(keys))
