"""The tests of `penstock config check`: what the settings mean, and whether what they name exists and answers.

A failed test does not stop the others. Secrets are read but never shown.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path

from kafka_io.net.secret import SecretReference
from kafka_io.net.security import FILE, ClientCredentials, Sasl, Tls
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from pipelines.cli.config_tests.cluster import check_cluster
from pipelines.cli.config_tests.machine import check_lake, check_machine, describe_definitions, describe_spark
from pipelines.cli.config_tests.result import CheckResult, checked, passed
from resources.settings.settings import Settings
from resources.settings.topic_formats import TopicFormat

_REQUEST_TIMEOUT_S = 10.0


def check_file(settings: Settings) -> Iterator[CheckResult]:
    """What the settings mean: the schedules, the Dagster definitions, Spark. Nothing outside the file is used."""
    for cluster in sorted(settings.clusters):
        for schedule in settings.schedules_of(cluster):
            yield passed(f"schedule {cluster}/{schedule}", f"loaded at {settings.timing_of(schedule).cron}")
    yield checked("dagster", partial(describe_definitions, settings))
    yield checked("spark", partial(describe_spark, settings))


def check_environment(settings: Settings) -> Iterator[CheckResult]:
    """Test this machine, secrets, files, the lake, registries and clusters. Requests are sent once, and end soon."""
    yield from check_machine(settings)
    for subject, read in _secrets(settings):
        yield checked(subject, partial(_can_be_read, read))
    for name, options in settings.topics.sections.items():
        if options.format.schema_file:
            yield checked(f"columns of topics.{name}", partial(_columns, options.format))
    yield from check_lake(settings)
    impatient = settings.with_short_timeout(attempts=1, timeout_s=_REQUEST_TIMEOUT_S)
    for name in sorted(settings.registries):
        yield checked(f"registry {name}", partial(_registry, impatient, name))
    for name in sorted(settings.clusters):
        yield from check_cluster(impatient, name)


def _secrets(settings: Settings) -> Iterator[tuple[str, Callable[[], object]]]:
    """The secrets and files that the settings name, each once, with a function that reads it."""
    readers: dict[str, Callable[[], object]] = {}
    if settings.lineage.token is not None:
        readers[f"secret {settings.lineage.token}"] = settings.lineage.token.read
    for section in _sections_with_secrets(settings):
        for field in fields(section):
            value = getattr(section, field.name)
            if isinstance(value, SecretReference):
                readers[f"secret {value}"] = value.read
            elif field.metadata == FILE and value is not None:
                readers[f"file {value}"] = Path(value).read_bytes
    yield from sorted(readers.items())


def _sections_with_secrets(settings: Settings) -> Iterator[Tls | Sasl | ClientCredentials | SchemaRegistrySettings]:
    """The sections that can name secrets and files."""
    for cluster in settings.clusters.values():
        tls, sasl = cluster.security.tls, cluster.security.sasl
        server = sasl and sasl.client_credentials
        yield from filter(None, (tls, sasl, server, server and server.tls))
    for registry in settings.registries.values():
        yield from filter(None, (registry, registry.tls))
    if settings.lineage.tls is not None:
        yield settings.lineage.tls


def _can_be_read(read: Callable[[], object]) -> str:
    """Read a secret or a file. The message does not contain what was read."""
    read()
    return "can be read"


def _columns(format_: TopicFormat) -> str:
    from pipelines.fetch.formats import encoding_of

    return f"{format_.schema_file}, columns: {len(encoding_of(format_.encoding).declared(format_))}"


def _registry(settings: Settings, name: str) -> str:
    from resources.kafka import open_schema_registry

    registry = settings.registries[name]
    subjects = open_schema_registry(settings, name).subjects()
    login = "bearer token" if registry.token else "basic authentication" if registry.password else "no login"
    return f"{registry.url}, subjects: {len(subjects)}, {login}"
