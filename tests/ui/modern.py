"""Modern brokers in this process, and their settings. Loads are small, so they need no Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer

FRESH = "fresh"
"""The cluster of the session's stand that has no topic when Dagster starts."""
RARELY = "0 0 1 1 *"
"""A cron expression that ticks only on New Year's Day: tests evaluate the schedules themselves."""


@contextmanager
def fresh_cluster(home: Path) -> Iterator[str]:
    """Run a broker without topics; yields the section of the settings file for its cluster."""
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=home / FRESH)) as broker:
        yield f'[clusters.{FRESH}]\nbootstrap = "127.0.0.1:{broker.port}"\n'


@contextmanager
def modern_cluster(home: Path, *, topics_per_run: int = 50) -> Iterator[Path]:
    """Run a broker; the settings file names it as the cluster `main`. The schedules tick only on New Year's Day."""
    config = ModernBrokerConfig(broker_id=1, data_dir=home / "broker")
    with ModernBrokerServer(config) as broker:
        settings = home / "penstock.toml"
        settings.write_text(
            f"""\
lake = "lake"
cron = "{RARELY}"
watch_cron = "{RARELY}"
verify_cron = "{RARELY}"
housekeeping.cron = "never"
topics_per_run = {topics_per_run}
[clusters.main]
bootstrap = "127.0.0.1:{broker.port}"
[caps]
request_timeout_s = 300
"""
        )
        yield settings
