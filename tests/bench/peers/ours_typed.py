"""Penstock in one process: plan, fetch, decode JSON to columns, and commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafka_io.records import decoder
from pipelines.loading.execute import fetch_here
from resources.settings import Settings, TopicSections
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
    format_ = {"format": "json", "columns": EVENT_COLUMNS, "bad_records": "fail"}
    topics = TopicSections.model_validate({job.topic: format_})
    return ours.settings(job).model_copy(update={"topics": topics})
