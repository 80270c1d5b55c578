"""The upgrade of a Dagster storage in which all topics of a schedule were partitions of one asset (before 0.7)."""

from collections.abc import Iterator

import dagster as dg

from pipelines.defs.catalog.catalog import Catalog
from pipelines.defs.catalog.known_topics import TopicStorage
from resources import topic_names

_NOTE = "This load was reported before each topic had an asset; the event is copied from the asset {key}."


def upgrade(instance: dg.DagsterInstance, storage: TopicStorage, catalog: Catalog) -> list[str]:
    """Copy the topics of the old partitions into the storage, each with its newest materialization.

    It is done once: the old partitions are removed at its end, and all events of the old assets stay. A tick that is
    interrupted copies again; topics that are known already are not copied twice.

    Returns:
        a sentence about each asset whose partitions were copied.
    """
    sentences = []
    for schedule in catalog.settings.schedules_of(storage.cluster):
        old_name, old_key = f"{storage.cluster}/{schedule}", dg.AssetKey(["lake", storage.cluster, schedule])
        partitions = list(instance.get_dynamic_partitions(old_name))
        if not partitions:
            continue
        known = set(storage.known().names)
        names = {topic: key for key in partitions if (topic := _topic(key)) and topic not in known}
        for topic, partition in names.items():
            for event in _newest(instance, old_key, partition, catalog.key(storage.cluster, topic)):
                instance.report_runless_asset_event(event)
            storage.add([topic])
        for key in partitions:
            instance.delete_dynamic_partition(old_name, key)
        sentences.append(f"upgraded {len(names)} topics of the asset {old_key.to_user_string()}")
    return sentences


def _topic(partition: str) -> str:
    try:
        return topic_names.decode(partition)
    except ValueError:  # a key that a user has added
        return ""


def _newest(
    instance: dg.DagsterInstance, old_key: dg.AssetKey, partition: str, new_key: dg.AssetKey
) -> Iterator[dg.AssetMaterialization]:
    records_filter = dg.AssetRecordsFilter(asset_key=old_key, asset_partitions=[partition])
    for record in instance.fetch_materializations(records_filter, limit=1).records:
        event = record.asset_materialization
        if event is not None:
            note = _NOTE.format(key=old_key.to_user_string())
            yield dg.AssetMaterialization(asset_key=new_key, metadata=event.metadata, description=note)
