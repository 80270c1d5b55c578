"""Two days of event time in topics of real brokers, with the daemon of Dagster: `python -m tests.brokers.two_days`.

One topic gets rows that are six hours late, and one has a partition without a leader for twelve hours. After each six
hours the calendar of complete hours must be right, and the daemon must have run the assets that follow it. At the end,
these must have counted all rows, and the hour with late rows again.

The brokers, the loads, the daemon, its sensors and its runs are real. Only the clock of the loads is simulated, so that
the two days take minutes.
"""

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import dagster as dg
from dagster._core.scheduler.instigation import SensorInstigatorData

from pipelines.defs.catalog.known_topics import TopicStorage
from pipelines.demo.state import DemoState, free_port
from pipelines.fetch.fetch_runner import fetch_here
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from tests.brokers.metadata import request_metadata
from tests.brokers.real import RealBroker
from tests.fakes.loaders import loader_of
from tests.timed_table import HOUR_MS
from tests.ui.servers import Servers
from tests.ui.waiting import until

VERSION = "3.9.1"
CLUSTER, TOPICS = "main", ("steady", "late", "leaderless")
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
SENSOR = "default_automation_condition_sensor"
COUNTED = "PENSTOCK_TEST_COUNTED"
"""The variable with the file to which the runs append what they counted."""
HOURS, STEP, ROWS = 48, 6, 2
WITHOUT = range(12, 24)
"""The hours in which a partition has no leader."""
LATE_HOUR, LATE_AT, LATE_ROWS = 18, 24, 3
_RARELY = "0 0 1 1 *"
_SETTINGS = """
lake = "{lake}"
webserver = ""
cron = "{rarely}"
watch_cron = "{rarely}"
verify_cron = "{rarely}"
housekeeping.cron = "never"
[clusters.main]
bootstrap = "{bootstrap}"
[caps]
attempts = 1
request_timeout_s = 5
[topics.".*"]
event_time = "timestamp"
complete = "hourly"
complete_since = "2026-01-01"
"""


def name(hour: int) -> str:
    """The partition key of an hour."""
    return f"{FIRST + timedelta(hours=hour):%Y-%m-%d-%H:%M}"


def no_spark() -> NoReturn:
    """Refuse to start Spark: each load is small."""
    raise AssertionError("a small load needs no Spark")


@dataclass(kw_only=True)
class TwoBrokers:
    """A cluster of two brokers. Partition 1 of `leaderless` is on the second one only."""

    first: RealBroker
    second: RealBroker
    waiting: list[int] = field(default_factory=list)

    def create_topics(self) -> None:
        """Create the three topics."""
        for topic in TOPICS:
            self.first.create_topic(topic, replicas=[[1], [2 if topic == "leaderless" else 1]])

    def send(self, topic: str, partition: int, times_ms: Sequence[int]) -> None:
        """Send a record with each of these times."""
        details = [{"timestamp": time_ms} for time_ms in times_ms]
        self.first.produce(topic, [(None, b"x")] * len(times_ms), partition=partition, details=details)

    def set_leader(self, *, is_there: bool) -> None:
        """Kill or start the second broker, and wait until the cluster knows it."""
        if is_there:
            self.second.start()
        else:
            self.second.kill()
        until(lambda: self._led() == 1 + is_there, f"{1 + is_there} partitions with a leader")

    def _led(self) -> int:
        return request_metadata(self.first.host, self.first.port).count_led("leaderless")

    def send_hours(self, times_ms: Sequence[int], *, has_leader: bool) -> None:
        """Send records to all partitions. The producer keeps those for the partition without a leader."""
        for topic in TOPICS:
            for partition in (0, 1):
                if (topic, partition) != ("leaderless", 1):
                    self.send(topic, partition, times_ms)
        self.waiting += times_ms
        if has_leader:
            self.send("leaderless", 1, self.waiting)
            self.waiting = []


@dataclass(frozen=True, kw_only=True)
class Followers:
    """Dagster, and what its runs have counted."""

    instance: dg.DagsterInstance
    settings: Settings
    counted: Path

    def wait_for_conditions(self) -> None:
        """Wait until the daemon has evaluated the conditions once: hours that are complete before are not requested."""

        def is_evaluated() -> bool:
            states = self.instance.all_instigator_state()
            return any(
                state.name == SENSOR and isinstance(data := state.instigator_data, SensorInstigatorData) and data.cursor
                for state in states
            )

        until(is_evaluated, "the first evaluation of the conditions")

    def load(self, now: datetime) -> None:
        """Load all topics as if it were this time."""
        for topic in TOPICS:
            with open_cluster(self.settings, CLUSTER) as cluster:
                loader_of(self.settings, cluster, no_spark, fetch=fetch_here, now=lambda: now).load(topic)

    def calendar(self, topic: str) -> set[str]:
        """The hours that Dagster shows as complete."""
        return self.instance.get_materialized_partitions(dg.AssetKey(["lake", CLUSTER, topic, "hours"]))

    def counts(self) -> dict[tuple[str, str], list[int]]:
        """The rows that the runs have counted, by topic and hour, the first count first."""
        counts = defaultdict(list)
        for line in self.counted.read_text().splitlines():
            count = json.loads(line)
            counts[count["topic"], count["hour"]].append(count["rows"])
        return counts

    def wait_for(self, complete: dict[str, int], late: int) -> None:
        """Wait until the first hours of each topic, so many, are complete and counted; one hour so often again."""
        expected = {topic: {name(hour) for hour in range(hours)} for topic, hours in complete.items()}
        pairs = {(topic, hour) for topic, hours in expected.items() for hour in hours}
        again = "late", name(LATE_HOUR)

        def is_counted() -> bool:
            counts = self.counts()
            return counts.keys() >= pairs and len(counts[again]) >= late

        until(is_counted, f"counts of the hours before {complete}")
        until(lambda: all(run.is_finished for run in self.instance.get_runs()), "the end of the runs")
        for topic, hours in expected.items():
            shown = self.calendar(topic)
            assert shown == hours, f"the calendar of {topic} differs in {sorted(shown ^ hours)}"


@contextmanager
def running(folder: Path) -> Iterator[tuple[TwoBrokers, Followers]]:
    """Run the brokers and Dagster for the length of a `with` block."""
    with ExitStack() as stack:
        quick = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
        first = stack.enter_context(RealBroker(VERSION, folder / "first", config=quick))
        second = RealBroker(VERSION, folder / "second", broker_id=2, config=quick, joins=first.quorum)
        stack.enter_context(second)
        brokers = TwoBrokers(first=first, second=second)
        brokers.create_topics()
        file, counted = folder / "penstock.toml", folder / "counted"
        file.write_text(_SETTINGS.format(lake=folder / "lake", rarely=_RARELY, bootstrap=first.bootstrap))
        counted.touch()
        os.environ[COUNTED] = str(counted)
        state = DemoState(home=folder / "state")
        state.begin()
        instance = stack.enter_context(dg.DagsterInstance.from_config(str(state.dagster_home)))
        TopicStorage(instance=instance, prefix="penstock", cluster=CLUSTER).add(TOPICS)
        followers = Followers(instance=instance, settings=Settings.load(file), counted=counted)
        servers = Servers(
            home=folder,
            dagster_home=state.dagster_home,
            settings=file,
            port=free_port(),
            code_port=free_port(),
            has_webserver=False,
            module=f"{__package__}.two_days_definitions",
        )
        stack.enter_context(servers)
        yield brokers, followers


def play(brokers: TwoBrokers, followers: Followers) -> None:
    """Let the two days pass, and check what Dagster did.

    Raises:
        AssertionError: the calendar, the runs or the counts are not right.
    """
    start = time.monotonic()
    first_ms = int(FIRST.timestamp()) * 1000
    followers.wait_for_conditions()
    for hour in range(0, HOURS + STEP, STEP):
        has_leader = hour not in WITHOUT
        if hour in (WITHOUT.start, WITHOUT.stop):
            brokers.set_leader(is_there=has_leader)
        times = [first_ms + (hour + n) * HOUR_MS + row * 1000 for n in range(STEP) for row in range(ROWS)]
        brokers.send_hours(times if hour < HOURS else [], has_leader=has_leader)
        if hour == LATE_AT:
            brokers.send("late", 0, [first_ms + LATE_HOUR * HOUR_MS] * LATE_ROWS)
        followers.load(FIRST + timedelta(hours=hour + STEP, minutes=15))
        complete = dict.fromkeys(TOPICS, hour + STEP)
        complete["leaderless"] = hour + STEP if has_leader else WITHOUT.start
        followers.wait_for(complete, late=2 if hour >= LATE_AT else 0)
        sys.stdout.write(f"{time.monotonic() - start:.0f} s: {hour + STEP} hours, complete are {complete}\n")
        sys.stdout.flush()
    _check_counts(followers)


def _check_counts(followers: Followers) -> None:
    """Check the counts of all runs.

    The daemon requests hours a second time if it evaluates the condition while the sensor stores their events: it sees
    these in two ticks. So each report of an hour may be counted twice, and not more often.
    """
    both = 2 * ROWS
    reports = {(topic, name(hour)): [both if hour < HOURS else 0] for topic in TOPICS for hour in range(HOURS + STEP)}
    reports["late", name(LATE_HOUR)] = [both, both + LATE_ROWS]
    counts = followers.counts()
    assert counts.keys() == reports.keys(), f"only one has these hours: {counts.keys() ^ reports.keys()}"
    wrong = {
        place: rows
        for place, rows in counts.items()
        if sorted(set(rows)) != reports[place] or sorted(rows) != rows or len(rows) > 2 * len(reports[place])
    }
    assert not wrong, f"these hours were counted with other rows, or another number of times: {wrong}"
    failed = [run.run_id for run in followers.instance.get_runs() if not run.is_success]
    assert not failed, f"these runs failed: {failed}"
    twice = sum(len(rows) - len(reports[place]) for place, rows in counts.items())
    sys.stdout.write(
        f"{HOURS} hours of {len(TOPICS)} topics: {sum(rows[-1] for rows in counts.values())} rows, "
        f"{len(followers.instance.get_runs())} runs, {twice} of {sum(map(len, reports.values()))} reports counted "
        "twice; all is right\n"
    )


def main() -> None:
    """Play the two days in a temporary folder, which remains after a failure."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-two-days-"))
    sys.stdout.write(f"the files are in {folder}\n")
    with running(folder) as (brokers, followers):
        play(brokers, followers)


if __name__ == "__main__":
    main()
