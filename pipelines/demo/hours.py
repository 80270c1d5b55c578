"""The second part of the demo: hours complete one after another, and a summary and a state table follow the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import dagster as dg
import pyarrow as pa

from pipelines.cli.output import console
from pipelines.cli.output.printed_table import print_table
from pipelines.cli.tables import add_state_proof
from pipelines.defs.build import build_defs
from pipelines.defs.runs.run import UNTIL_TAG
from pipelines.defs.runs.state_assets import state_key
from pipelines.demo.daily_summary import summary_output, summary_rows, update_summary
from pipelines.demo.departures import TOPIC, Departures, departures, publish
from pipelines.demo.reported_hours import ReportedHour, ReportedHours, by_day
from pipelines.demo.state import MODERN, DemoState
from pipelines.demo.steps import QUIET, ask, chapter, discover, load, out, tick
from pipelines.formats.tables import lake_table
from pipelines.state_tables.state_table import state_output
from pipelines.status.completeness import complete_through
from pipelines.table.lake_table import LakeTable
from pipelines.verify.verify import verify
from resources.machines.spark import open_session
from resources.printed import printed
from resources.settings.settings import Settings
from resources.stores.lake import Lake

_LATEST = "SELECT tailnum, time_hour::VARCHAR AS hour, carrier || flight AS flight, origin, dest"
_QUESTIONS = {
    "Which aircraft departed last?": f"""\
{_LATEST}
FROM aircraft WHERE NOT _deleted ORDER BY time_hour DESC, tailnum LIMIT 3""",
    "When did the aircraft of the late flight depart last? (Later than that flight.)": f"""\
{_LATEST}
FROM aircraft WHERE tailnum = '{{tailnum}}'""",
}


@dataclass(kw_only=True)
class HoursStory:
    """The chapters about one topic, in the order in which `run` calls them.

    Args:
        state: the folder of the demo.
        instance: the Dagster instance.
        settings: the settings of the demo.
        hours: the hours that the sensor has reported so far.
        cursor: the cursor of the sensor.
    """

    state: DemoState
    instance: dg.DagsterInstance
    settings: Settings
    hours: ReportedHours = field(default_factory=ReportedHours)
    cursor: str | None = None

    @property
    def table(self) -> LakeTable:
        """The table of the topic."""
        return lake_table(Lake.of(self.settings), MODERN, TOPIC)

    def run(self) -> bool:
        """Run all chapters on running servers, and return whether the numbers are right and the tables are proven."""
        flights = departures(self.settings)
        published = flights.in_time.num_rows
        keys = self._begin(flights)
        with chapter("A run loads the first day: an hour is complete when each partition has a later flight"):
            self._load(keys, {UNTIL_TAG: str(flights.second_day)})
        with chapter("The next run reaches the ends of the logs: all hours until now are complete"):
            self._load(keys)
        with chapter("PySpark adds what is new to a summary of each day, exactly once: it runs twice"):
            counted = [self._summarize(), self._summarize()]
        with chapter("One flight arrives late: its hour is reported again, and the summary gets one more flight"):
            again = self._load_late(keys, flights.late)
            counted.append(self._summarize())
        with chapter("The latest flight of each aircraft is in a state table"):
            has_latest = self._update_state(keys, flights.late)
        right = counted == [published, published, published + 1] and [hour.late for hour in again] == [1]
        return self._is_proven(published + 1) and right and has_latest

    def _begin(self, flights: Departures) -> Sequence[dg.AssetKey]:
        """Publish the flights, and return the asset of the topic that the sensor finds."""
        with chapter("Flights of three days go to a second cluster, whose records have timestamps"):
            publish(self.settings, flights.in_time)
            days = f"from {flights.first_day} on, in the order of their hours"
            out.print(f"  {TOPIC}: {flights.in_time.num_rows:,} flights {days}", soft_wrap=True)
        with chapter("Dagster's sensor finds the topic"):
            return discover(self.state, self.instance, MODERN)

    def _load_late(self, keys: Sequence[dg.AssetKey], flights: pa.Table) -> Sequence[ReportedHour]:
        """Publish and load the flight that is late, and return the hours that are reported again."""
        [late] = flights.to_pylist()
        out.print("  {carrier}{flight} of {time_hour}, with the aircraft {tailnum}".format(**late))
        publish(self.settings, flights)
        return self._load(keys)

    def _load(self, keys: Sequence[dg.AssetKey], tags: Mapping[str, str] | None = None) -> Sequence[ReportedHour]:
        """Load what is new, report complete hours as the daemon does, and return those that are reported again."""
        load(self.state, self.instance, MODERN, keys, tags)
        result = tick(self.state, self.instance, f"complete_hours__{MODERN}", self.cursor)
        self.cursor = result.cursor
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        reports = [ReportedHour.of(event) for event in result.asset_events]
        through = complete_through(self.table)
        assert through is not None
        out.print(f"  complete through {through:%Y-%m-%d %H:%M:%S} UTC; the sensor reports these hours:")
        print_table("day >hours first last >flights >late", by_day(reports))
        return self.hours.add(reports)

    def _summarize(self) -> int:
        """Update the summary, print it, and return how many flights it counts."""
        output = summary_output(self.state.home)
        done = update_summary(self.table, output, open_session(self.settings.spark))
        days = summary_rows(output)
        if done is None:
            out.print("  nothing is new, and nothing changes")
        else:
            out.print(f"  new rows: {done['new']:,}, up to version {done['version']} of the table")
            print_table("day >flights >minutes_late", days)
        return sum(day["flights"] for day in days)

    def _update_state(self, keys: Sequence[dg.AssetKey], flights: pa.Table) -> bool:
        """Materialize the asset of the state table, print rows of it, and compare one with the flight that was late."""
        defs = build_defs(self.state.settings)
        assets = [defs.resolve_assets_def(state_key(key)) for key in keys]
        dg.materialize(assets, instance=self.instance, run_config=QUIET)
        output, [late] = state_output(self.table), flights.to_pylist()
        questions = {question: query.format(**late) for question, query in _QUESTIONS.items()}
        [latest] = ask(output.lake, {"aircraft": output.uri}, questions)
        return datetime.fromisoformat(latest["hour"]) > datetime.fromisoformat(late["time_hour"])

    def _is_proven(self, published: int) -> bool:
        """Verify the table and the state table, and compare the numbers of rows with that of published flights."""
        with chapter("penstock verify: is each row there once, and is the state what all rows give?"):
            proof = verify(self.table)
            record = printed(proof)
            add_state_proof(self.settings, self.table, record)
            console.proofs([record])
            loaded = sum(partition.rows for partition in proof.partitions)
            out.print(
                f"  {TOPIC}: {published:,} published, {loaded:,} in the table, {self.hours.rows:,} in complete hours"
            )
        return bool(record["proven"]) and published == loaded == self.hours.rows
