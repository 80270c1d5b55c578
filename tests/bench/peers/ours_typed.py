"""Penstock in one process: plan, fetch, decode JSON or Avro to columns, and commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafka_io.records import decoder
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from pipelines.fetch.fetch_runner import fetch_here
from resources.settings.settings import Settings
from resources.settings.topic_formats import TopicFormat
from resources.settings.topic_options import TopicOptions
from resources.settings.topic_sections import TopicSections
from tests.bench.cases import Job
from tests.bench.data import EVENT_COLUMNS
from tests.bench.peers import ours


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, after one load outside the clock."""
    decoder.warm()
    ours.load(job.topic, _settings(job.warming()), ours.no_session, fetch=fetch_here)
    yield lambda: ours.load(job.topic, _settings(job), ours.no_session, fetch=fetch_here)


def _settings(job: Job) -> Settings:
    values = {"format": "avro"} if job.registry else {"format": "json", "columns": EVENT_COLUMNS}
    format_ = TopicFormat.model_validate({**values, "bad_records": "fail"})
    topics = TopicSections(sections={job.topic: TopicOptions(format=format_)})
    registries = {"main": SchemaRegistrySettings(url=job.registry)} if job.registry else {}
    return ours.settings(job).model_copy(update={"topics": topics, "registries": registries})
