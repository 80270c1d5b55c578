"""The cluster `many`: more than a hundred topics. A foreign Delta table is where the table of one of them should be."""

from collections.abc import Iterator
from contextlib import contextmanager
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
TOPICS = tuple(f"topic-{number:03}" for number in range(120))
TOPICS_PER_RUN = 40
FOREIGN = "topic-050"
"""The topic whose table folder contains a foreign Delta table."""
LOADED_TOPICS = tuple(topic for topic in TOPICS if topic != FOREIGN)
MESSAGES = numbered(3)


@contextmanager
def many_topics(home: Path, lake: Path) -> Iterator[str]:
    """Run a broker that has the topics; yields the section of the settings file for its cluster."""
    write_deltalake(str(lake / CLUSTER / FOREIGN), pa.table({"other": [1, 2, 3]}))
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=home / "many")) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        with open_producer(bootstrap=bootstrap, settings=ProducerSettings(idempotent=False)) as producer:
            for topic in TOPICS:
                publish_values((producer,), topic, MESSAGES)
        yield f'[clusters.{CLUSTER}]\nbootstrap = "{bootstrap}"\n'
