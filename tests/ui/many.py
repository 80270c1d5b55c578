"""The cluster `many`: three runs load its topics. A foreign Delta table is where the table of one of them should be."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from kafka_io.producer.opening import open_producer
from kafka_io.producer.publishing import publish_values
from kafka_io.producer.settings import ProducerSettings
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.live import numbered

CLUSTER = "many"
MESSAGES = numbered(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyTopics:
    """The topics of the cluster: three runs load them all."""

    topics_per_run: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all topics."""
        return tuple(f"topic-{number:03}" for number in range(3 * self.topics_per_run))

    @property
    def foreign(self) -> str:
        """The topic whose table folder contains a foreign Delta table. The second run fails because of it."""
        return self.names[self.topics_per_run + 1]

    @property
    def loaded(self) -> tuple[str, ...]:
        """The topics that are loaded."""
        return tuple(topic for topic in self.names if topic != self.foreign)

    @property
    def failure(self) -> str:
        """The error of the run that fails."""
        return f"1 of {self.topics_per_run} topics were not loaded completely: {self.foreign}"


FEW, HUNDRED = ManyTopics(topics_per_run=4), ManyTopics(topics_per_run=40)
"""Each topic costs two seconds of CPU time, so only `make thorough` has more than a hundred."""


@contextmanager
def many_topics(many: ManyTopics, home: Path, lake: Path) -> Iterator[str]:
    """Run a broker that has the topics; yields the section of the settings file for its cluster."""
    write_deltalake(str(lake / CLUSTER / many.foreign), pa.table({"other": [1, 2, 3]}))
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=home / "many")) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        with open_producer(bootstrap=bootstrap, settings=ProducerSettings(idempotent=False)) as producer:
            for topic in many.names:
                publish_values((producer,), topic, MESSAGES)
        yield f'[clusters.{CLUSTER}]\nbootstrap = "{bootstrap}"\n'
