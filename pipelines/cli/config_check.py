"""The tests of `penstock config check`: what the settings mean, and whether what they name exists and answers.

A failed test does not stop the others. Secrets are read but never shown.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_io.brokers.bootstrap import BOOTSTRAP_ID
from kafka_io.errors import KafkaIOError, Where
from kafka_io.model import TopicEntry, TopicIds
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import FILE, Sasl, Tls
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from pipelines.cli.console import WITHOUT_IDS
from pipelines.cli.result import show_trace
from pipelines.loading.work import SliceFailure
from resources.errors import LakeRefused
from resources.extras import check_extra, has_extra, install_hint
from resources.settings import Settings, SettingsError
from resources.settings_shown import shown
from resources.topic_formats import TopicFormat

if TYPE_CHECKING:
    from kafka_io.cluster.cluster import Cluster

_REQUEST_TIMEOUT_S = 10.0
CheckResult = Mapping[str, Any]
"""A result of `penstock config check --json`: what was tested, whether it is ok, a sentence about it, and the error."""


def passed(subject: str, message: str) -> CheckResult:
    """The result of a test that passed."""
    return {"check": subject, "ok": True, "message": message, "errors": []}


def failed(subject: str, error: Exception, *, message: str | None = None) -> CheckResult:
    """The result of a test that failed with this error; without a message, the text of the error is shown."""
    failure = SliceFailure.of(error, Where())
    show_trace(failure.trace)
    return {"check": subject, "ok": False, "message": message or str(failure), "errors": [failure.as_dict()]}


def _check(subject: str, test: Callable[[], str]) -> CheckResult:
    """The result of `test`, which returns a message or raises the reason why it fails."""
    try:
        return passed(subject, test())
    except Exception as error:  # noqa: BLE001 - any error is the reason why the test fails
        return failed(subject, error)


def check_file(settings: Settings) -> Iterator[CheckResult]:
    """What the settings mean: the groups, the Dagster definitions, Spark. Nothing outside the file is used."""
    for cluster in sorted(settings.clusters):
        for group in settings.groups_of(cluster):
            yield passed(f"group {cluster}/{group}", f"loaded at {settings.timing_of(group).cron}")
    yield _check("dagster", lambda: _definitions(settings))
    yield _check("spark", lambda: _spark(shown(settings)["spark"]))


def check_environment(settings: Settings) -> Iterator[CheckResult]:
    """Test Java, secrets, files, the lake, registries and clusters. Requests are sent once, with a short timeout."""
    yield _check("java", _java)
    for subject, read in _secrets(settings):
        yield _check(subject, partial(_can_be_read, read))
    for name, format_ in settings.topics.formats.items():
        if format_.schema_file:
            yield _check(f"columns of topics.{name}", partial(_columns, format_))
    yield _check("lake", lambda: _lake(settings))
    impatient = settings.with_short_timeout(attempts=1, timeout_s=_REQUEST_TIMEOUT_S)
    for name in sorted(settings.registries):
        yield _check(f"registry {name}", partial(_registry, impatient, name))
    for name in sorted(settings.clusters):
        yield from _check_cluster(impatient, name)


def _definitions(settings: Settings) -> str:
    if not has_extra("dagster"):
        return f"not installed, so nothing loads on a schedule; {install_hint('dagster')}"
    import dagster as dg

    from pipelines.defs.build import definitions_of
    from pipelines.defs.catalog import Catalog
    from resources.penstock import PenstockResource

    with warnings.catch_warnings(action="ignore"):  # Dagster warns about its own beta features
        try:
            definitions = definitions_of(Catalog(source=PenstockResource(inline=settings), settings=settings))
            dg.Definitions.validate_loadable(definitions)
            repository = definitions.get_repository_def()
        except dg.DagsterInvalidDefinitionError as error:  # for example, Dagster rejects a cron expression
            raise SettingsError(str(error)) from error
    return f"schedules: {len(repository.schedule_defs)}, sensors: {len(repository.sensor_defs)}"


def _spark(spark: Mapping[str, str]) -> str:
    from resources.spark import DEFAULT_MASTER

    if not has_extra("spark") and not spark:
        return f"not installed, so a load of more than one task fails; {install_hint('spark')}"
    check_extra("spark", "the section [spark] of the settings")
    address = spark.get("remote") or spark.get("master", DEFAULT_MASTER)
    return f"{address}, other Spark settings: {len(spark.keys() - {'master', 'remote'})}"


def _java() -> str:
    from resources.java import find_java

    if not has_extra("spark"):
        return "not needed without Spark"
    return str(find_java())


def _secrets(settings: Settings) -> Iterator[tuple[str, Callable[[], object]]]:
    """The secrets and files that the settings name, each once, with a function that reads it."""
    readers: dict[str, Callable[[], object]] = {}
    for section in _sections_with_secrets(settings):
        for field in fields(section):
            value = getattr(section, field.name)
            if isinstance(value, SecretReference):
                readers[f"secret {value}"] = value.read
            elif field.metadata == FILE and value is not None:
                readers[f"file {value}"] = Path(value).read_bytes
    yield from sorted(readers.items())


def _sections_with_secrets(settings: Settings) -> Iterator[Tls | Sasl | SchemaRegistrySettings]:
    """The sections that can name secrets and files."""
    for cluster in settings.clusters.values():
        yield from filter(None, (cluster.security.tls, cluster.security.sasl))
    for registry in settings.registries.values():
        yield from filter(None, (registry, registry.tls))


def _can_be_read(read: Callable[[], object]) -> str:
    """Read a secret or a file. The message does not contain what was read."""
    read()
    return "can be read"


def _lake(settings: Settings) -> str:
    from resources.durable import local_path
    from resources.lake import Lake
    from resources.lake_marker import check_put_if_absent, read_marker

    lake = Lake.of(settings)
    tables = sum(len(lake.topics(cluster)) for cluster in settings.clusters)
    folder = local_path(settings.lake)
    if folder is not None:
        _check_writable(folder)
    if folder is None or folder.exists():  # a check does not create a folder that may be a missing mount
        check_put_if_absent(lake)
    former = sorted(set(lake.clusters()) - set(settings.clusters))
    facts = [shown(settings)["lake"], f"tables: {tables}"]
    facts += [f"clusters that the settings do not have: {' '.join(former)}"] if former else []
    facts += [] if tables or former or read_marker(lake) else ["a new lake: no load has used it"]
    return ", ".join(facts)


def _check_writable(folder: Path) -> None:
    """Check that this user can write to the folder, or can create it.

    Raises:
        LakeRefused: this user cannot.
    """
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise LakeRefused(f"this user cannot write to {existing}")


def _columns(format_: TopicFormat) -> str:
    from pipelines.loading.formats import encoding_of

    return f"{format_.schema_file}, columns: {len(encoding_of(format_.encoding).declared(format_))}"


def _registry(settings: Settings, name: str) -> str:
    from resources.kafka import open_schema_registry

    registry = settings.registries[name]
    subjects = open_schema_registry(settings, name).subjects()
    login = "bearer token" if registry.token else "basic authentication" if registry.password else "no login"
    return f"{registry.url}, subjects: {len(subjects)}, {login}"


def _check_cluster(settings: Settings, name: str) -> Iterator[CheckResult]:
    from resources.kafka import open_cluster

    subject = f"cluster {name}"
    try:
        with open_cluster(settings, name) as cluster:
            listing = cluster.topics()
            topics = [topic for topic in listing.entries if settings.rules(name).allows(topic.name)]
            facts = [*_ask_brokers(cluster, topics), f"topics allowed: {len(topics)} of {len(listing.entries)}"]
            facts += [f"unreadable topics: {len(listing.skipped)}"] if listing.skipped else []
            facts += [f"topics have no ids, {WITHOUT_IDS}"] if lack_ids(topics) else []
    except Exception as error:  # noqa: BLE001 - as in `_check`
        yield failed(subject, error)
        return
    yield passed(subject, ", ".join([*facts, _security(settings, name)]))
    groups = [settings.group_of(name, topic.name) for topic in topics]
    for group in settings.groups_of(name):
        yield passed(f"topics {name}/{group}", f"topics: {groups.count(group)}")


def _ask_brokers(cluster: "Cluster", topics: list[TopicEntry]) -> list[str]:
    """Facts about the brokers: generation, number, cluster id.

    Metadata can contain addresses that cannot be reached from here, so the leaders of one topic are asked for bounds.

    Raises:
        KafkaIOError: one of them does not answer.
    """
    cluster_id = [f"id {cluster.cluster_id()}"] if cluster.cluster_id() else []
    sample = next((topic for topic in topics if topic.partitions), None)
    if sample is None:
        return [*cluster_id, "brokers not tested: there is no topic to read"]
    for answer in cluster.bounds(sample.name, sample.partitions).values():
        if isinstance(answer, KafkaIOError):
            raise answer
    sources = [cluster.source(partition) for topic in topics for partition in topic.partitions]
    brokers = {broker for source in sources for broker in source.brokers if broker.id != BOOTSTRAP_ID}
    return [sources[0].generation.value, f"brokers: {len(brokers)}", *cluster_id]


def lack_ids(topics: list[TopicEntry]) -> bool:
    """Whether a topic has no id at all, as below 2.8 without ZooKeeper."""
    return any(topic.ids == TopicIds() for topic in topics)


def _security(settings: Settings, name: str) -> str:
    security = settings.clusters[name].security
    tls = ["TLS"] if security.tls is not None else []
    sasl = [f"SASL {security.sasl.mechanism}"] if security.sasl is not None else []
    return " and ".join(tls + sasl) or "plain text"
