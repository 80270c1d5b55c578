"""`python -m tests.brokers.canary_run FOLDER TOPIC`: loads that may print a secret when they succeed or fail.

It runs in its own process, because Spark's event log and UI are settings of a JVM, and because all output is searched.
It stores the pages of Spark's UI in the folder; test_canary.py searches everything.
"""

import json
import sys
from pathlib import Path
from urllib.request import urlopen

import click
import dagster as dg
from pyspark.sql import SparkSession

from pipelines.cli.main import main as penstock
from pipelines.defs.build import definitions_of
from pipelines.defs.catalog.catalog import Catalog, topic_schedules
from pipelines.defs.catalog.known_topics import KnownTopics
from pipelines.load.load import Loader
from resources.kafka import open_cluster
from resources.machines.spark import open_session
from resources.penstock import PenstockResource
from resources.printed import printed
from resources.settings.settings import Settings

_PAGES = ("jobs", "stages", "environment", "executors", "SQL")
_ANSWERS = ("environment", "jobs", "stages", "allexecutors", "sql?details=true")


def main(folder: Path, topic: str) -> None:
    """Run all loads in one Spark session, then save the pages of its UI."""
    settings = Settings.load()
    open_session(settings.spark)
    for cluster in ("right", "wrong"):
        penstock(["--debug", "load", topic, "--cluster", cluster, "--json"], standalone_mode=False)
    _fail_in_the_workers(settings, folder, topic)
    _run_in_dagster(settings, topic)
    _save_ui_pages(folder)


def _fail_in_the_workers(settings: Settings, folder: Path, topic: str) -> None:
    """Load with a password that is right for the plan and wrong for the fetch."""
    password = folder / "password"

    def session() -> SparkSession:
        password.write_text((folder / "wrong password").read_text())
        return open_session(settings.spark)

    with open_cluster(settings, "changing") as cluster:
        load = Loader.of(settings, cluster, session).load(topic)
    click.echo(f"{json.dumps(printed(load))}\n{load.trace}\n{load}")


def _run_in_dagster(settings: Settings, topic: str) -> None:
    """Load the topic in two Dagster runs: with the right password, and with a wrong one."""
    known = dict.fromkeys(settings.clusters, KnownTopics(names=(topic,)))
    catalog = Catalog(source=PenstockResource(), settings=settings, known=known)
    defs = definitions_of(catalog)
    with dg.DagsterInstance.get() as instance:
        for schedule in topic_schedules(catalog):
            if schedule.cluster in ("again", "wrong"):
                job = defs.resolve_job_def(schedule.named("load"))
                keys = [schedule.key(topic)]
                result = job.execute_in_process(instance=instance, asset_selection=keys, raise_on_error=False)
                for event in result.all_events:
                    click.echo(event)


def _save_ui_pages(folder: Path) -> None:
    """Store the pages and the REST answers of Spark's UI."""
    session = SparkSession.getActiveSession()
    assert session is not None
    url, app = session.sparkContext.uiWebUrl, session.sparkContext.applicationId
    paths = [f"{page}/" for page in _PAGES] + [f"api/v1/applications/{app}/{answer}" for answer in _ANSWERS]
    for number, path in enumerate(paths):
        with urlopen(f"{url}/{path}") as answer:
            (folder / "seen" / f"ui-{number}").write_bytes(answer.read())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
