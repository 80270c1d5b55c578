"""What `penstock config check` finds: whether what the settings name is there, and what they mean for it.

Each finding stands for itself: what is wrong with one thing hides no other. Secrets are read, and not told.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_io.client.modern.bootstrap import BOOTSTRAP_ID
from kafka_io.errors import KafkaIOError
from kafka_io.model import TopicEntry
from kafka_io.net.secret import Reference
from resources.settings import Settings
from resources.settings_shown import shown

if TYPE_CHECKING:
    from kafka_io.client.cluster import Cluster

_MOST_WAIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about one thing."""

    what: str
    ok: bool
    told: str

    def as_dict(self) -> dict[str, Any]:
        """As `penstock config check --json` prints it."""
        return asdict(self)


def finding(what: str, ask: Callable[[], str]) -> Finding:
    """What `ask` tells, or why it fails."""
    try:
        return Finding(what=what, ok=True, told=ask())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong with this thing
        return Finding(what=what, ok=False, told=f"{type(error).__name__}: {error}")


def of_file(settings: Settings) -> Iterator[Finding]:
    """What the settings themselves tell."""
    for cluster in sorted(settings.clusters):
        for group in settings.groups_of(cluster):
            yield Finding(what=f"group {cluster}/{group}", ok=True, told=f"loaded at {settings.timing_of(group).cron}")
    yield finding("dagster", lambda: _declared(settings))
    yield Finding(what="spark", ok=True, told=_spark(shown(settings)["spark"]))


def of_what_is_there(settings: Settings) -> Iterator[Finding]:
    """What the machine, the lake and the brokers tell. Each broker is asked once, and not for long."""
    yield finding("java", _java)
    for what, ask in _secrets(settings):
        yield finding(what, ask)
    yield finding("lake", lambda: _lake(settings))
    asking = settings.hasty(attempts=1, timeout_s=_MOST_WAIT_S)
    for name in sorted(settings.clusters):
        yield from _of_cluster(asking, name)


def _declared(settings: Settings) -> str:
    import dagster as dg

    from pipelines.declaring import declared

    with warnings.catch_warnings(action="ignore"):  # Dagster's, of its own beta parts
        made = declared(settings)
        dg.Definitions.validate_loadable(made)
        found = made.get_repository_def()
        assets = len(made.resolve_all_asset_specs())
    return f"assets: {assets}, schedules: {len(found.schedule_defs)}, sensors: {len(found.sensor_defs)}"


def _spark(spark: Mapping[str, str]) -> str:
    from resources.spark import DEFAULT_MASTER

    place = spark.get("remote") or spark.get("master", DEFAULT_MASTER)
    return f"{place}, settings of its own: {len(spark.keys() - {'master', 'remote'})}"


def _java() -> str:
    from resources.java import find_java

    return str(find_java())


def _secrets(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    """The secrets and files that the settings name, each once, and how to try it."""
    named: dict[str, Callable[[], str]] = {}
    for cluster in settings.clusters.values():
        for section in (cluster.security.tls, cluster.security.sasl):
            for key, value in dict(section or {}).items():
                if isinstance(value, Reference):
                    named[f"secret {value}"] = partial(_read, value)
                elif key in {"ca", "certificate", "key"} and value is not None:
                    named[f"file {value}"] = partial(_readable, value)
    yield from sorted(named.items())


def _read(reference: Reference) -> str:
    reference.read()
    return "is there"


def _readable(path: str) -> str:
    with Path(path).open("rb"):
        return "is there"


def _lake(settings: Settings) -> str:
    from resources.lake import Lake

    lake = Lake.of(settings)
    tables = sum(len(lake.topics(cluster)) for cluster in settings.clusters)
    if "://" not in settings.lake:
        _check_writable(Path(settings.lake))
    return f"{shown(settings)['lake']}, tables: {tables}"


def _check_writable(folder: Path) -> None:
    """Whether we may write there, or make it.

    Raises:
        PermissionError: we may not.
    """
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{there} is not ours to write in")


def _of_cluster(settings: Settings, name: str) -> Iterator[Finding]:
    from resources.kafka import open_cluster

    what = f"cluster {name}"
    try:
        with open_cluster(settings, name) as cluster:
            listed = cluster.topics()
            topics = [topic for topic in listed.found if settings.rules(name).allows(topic.name)]
            told = [*_answering(cluster, topics), f"topics allowed: {len(topics)} of {len(listed.found)}"]
            told += [f"passed over: {len(listed.skipped)}"] if listed.skipped else []
    except Exception as error:  # noqa: BLE001 - as `finding` does
        yield Finding(what=what, ok=False, told=f"{type(error).__name__}: {error}")
        return
    yield Finding(what=what, ok=True, told=", ".join([*told, _security(settings, name)]))
    taken = [settings.group_of(name, topic.name) for topic in topics]
    for group in settings.groups_of(name):
        yield Finding(what=f"topics {name}/{group}", ok=True, told=f"taken: {taken.count(group)}")


def _answering(cluster: "Cluster", topics: list[TopicEntry]) -> list[str]:
    """What the brokers are. The leaders of one topic are asked for its bounds: addresses may be told that lead nowhere.

    Raises:
        KafkaIOError: one of them does not answer.
    """
    there = [f"id {cluster.cluster_id()}"] if cluster.cluster_id() else []
    tried = next((topic for topic in topics if topic.partitions), None)
    if tried is None:
        return [*there, "no topic to try it with"]
    for answer in cluster.bounds(tried.name, tried.partitions).values():
        if isinstance(answer, KafkaIOError):
            raise answer
    sources = [cluster.source(partition) for topic in topics for partition in topic.partitions]
    brokers = {broker for source in sources for broker in source.brokers if broker.id != BOOTSTRAP_ID}
    return [sources[0].generation.value, f"brokers: {len(brokers)}", *there]


def _security(settings: Settings, name: str) -> str:
    security = settings.clusters[name].security
    told = [
        *(["TLS"] if security.tls is not None else []),
        *([f"SASL {security.sasl.mechanism}"] if security.sasl is not None else []),
    ]
    return " and ".join(told) or "plain text"
