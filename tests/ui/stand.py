"""The environment of the UI tests: a running Dagster instance, queries to it, and its tables."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from deltalake import DeltaTable

from pipelines.defs.catalog.known_topics import TopicStorage
from pipelines.defs.catalog.topic_keys import key_name
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.demo.state import DemoState, free_port
from pipelines.verify.verify import Proof, verify
from resources.settings.settings import Settings
from resources.stores.lake import Lake
from tests.publishing import publish_by_settings
from tests.ui.servers import Servers
from tests.ui.waiting import until

MAIN = "main"
_LOCATION = {"repositoryLocationName": "penstock", "repositoryName": "__repository__"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """A cluster, the tables of its topics, and Dagster."""

    servers: Servers
    instance: dg.DagsterInstance
    cluster: str = MAIN

    @property
    def url(self) -> str:
        """The URL of the webserver."""
        return f"http://127.0.0.1:{self.servers.port}"

    @property
    def settings(self) -> Settings:
        """The current settings of the file."""
        return Settings.load(self.servers.settings)

    def asset(self, topic: str) -> dg.AssetKey:
        """The asset of the table of a topic."""
        return dg.AssetKey(["lake", self.cluster, key_name(topic)])

    def page(self, topic: str) -> str:
        """The path of the page of the topic's asset."""
        return f"/assets/{'/'.join(self.asset(topic).path)}"

    def is_loaded(self, topic: str) -> bool:
        """Whether Dagster has a materialization of the table of a topic."""
        return self.instance.get_latest_materialization_event(self.asset(topic)) is not None

    def defined(self) -> set[str]:
        """The topics of the cluster whose assets the webserver has defined."""
        nodes = self.ask(
            "{ assetNodes { assetKey { path } metadataEntries { label ... on TextMetadataEntry { text } } } }"
        )
        entries = [
            {entry["label"]: entry.get("text") for entry in node["metadataEntries"]}
            for node in nodes["assetNodes"]
            if node["assetKey"]["path"][:2] == ["lake", self.cluster]
        ]
        return {str(entry["penstock/topic"]) for entry in entries}

    def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        """Publish messages. They can be read at once."""
        assert publish_by_settings(self.settings, topic, messages, cluster=self.cluster) == len(messages)

    def table(self, topic: str) -> DeltaLakeTable:
        """The table of a topic."""
        return DeltaLakeTable.of(Lake.of(self.settings), self.cluster, topic)

    def delta(self, topic: str) -> DeltaTable:
        """The table of a topic, as any reader of Delta opens it."""
        return DeltaTable(self.table(topic).uri)

    def values(self, topic: str) -> list[bytes]:
        """The values in the table of a topic, sorted."""
        return sorted(self.delta(topic).to_pyarrow_table(columns=["value"])["value"].to_pylist())

    def proof(self, topic: str) -> Proof:
        """The proof of a topic's table."""
        return verify(self.table(topic))

    def ask(self, query: str, **variables: Any) -> Any:
        """The data that the webserver's GraphQL API returns, as for its pages."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            response = json.load(answer)
        assert "errors" not in response, response["errors"]
        return response["data"]

    def answers(self) -> bool:
        """Whether the webserver answers and has loaded the code location."""
        try:
            location = self.ask(_LOCATION_STATUS)["workspaceOrError"]["locationEntries"][0]["locationOrLoadError"]
        except urllib.error.HTTPError as error:
            error.close()  # the error is a response too, and keeps the connection open
            return False
        except OSError:
            return False
        assert location is None or "message" not in location, location["message"]
        return location is not None

    def wait_for(self, *topics: str) -> None:
        """Wait until the sensor has requested runs for these topics, and the runs have loaded and verified them."""
        until(lambda: all(map(self.is_loaded, topics)), f"tables of {topics}")
        self.wait_for_runs()

    def wait_for_runs(self) -> None:
        """Wait until no run is queued or unfinished."""
        until(lambda: all(run.is_finished for run in self.instance.get_runs()), "the end of the runs")

    def launch(self, job: str, topics: Sequence[str], *, config: object = None) -> str:
        """Launch a job over topics as the button of the launchpad does. Returns the id of the queued run."""
        response = self.ask(
            _LAUNCH,
            params={
                "selector": {
                    **_LOCATION,
                    "jobName": job,
                    "assetSelection": [{"path": self.asset(topic).path} for topic in topics],
                    "assetCheckSelection": [],
                },
                "runConfigData": json.dumps(config or {}),
            },
        )["launchPipelineExecution"]
        return str(response["run"]["runId"])

    def terminate(self, run_id: str) -> str:
        """Terminate a run as the button of its page does. Returns the type of the answer."""
        return str(self.ask(_TERMINATE, run=run_id)["terminateRun"]["__typename"])

    def preview(self, schedule: str) -> Any:
        """The run requests of a schedule if it ticked now, as the button "Preview tick result" shows them."""
        selector = {**_LOCATION, "scheduleName": schedule}
        return self.ask(_PREVIEW, selector=selector, now=time.time())["scheduleDryRun"]["evaluationResult"]

    def requested(self, schedule: str) -> list[set[str]]:
        """The topics of each run that a schedule would request now."""
        requests = self.preview(schedule)["runRequests"] or []
        return [{key["path"][-1] for key in request["assetSelection"]} for request in requests]

    def ticks(self, sensor: str) -> list[Any]:
        """The ticks of a sensor, as its page lists them; the newest first."""
        response = self.ask(_TICKS, selector={**_LOCATION, "sensorName": sensor})
        return list(response["sensorOrError"]["sensorState"]["ticks"])

    def run(self, run_id: str) -> dg.DagsterRun:
        """A run as it is now."""
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def rows(self, topic: str) -> list[int]:
        """The rows of each load of a topic, the newest first."""
        records = self.instance.fetch_materializations(self.asset(topic), limit=100).records
        row_counts = [
            record.asset_materialization.metadata["rows"].value for record in records if record.asset_materialization
        ]
        return [value for value in row_counts if isinstance(value, int)]


@contextmanager
def dagster_on(
    home: Path,
    settings: Path,
    *,
    runs_at_once: int = 1,
    loads_at_once: int = 2,
    shared_code: bool = False,
    has_daemon: bool = True,
    known: Sequence[str] = (),
) -> Iterator[Stand]:
    """Run Dagster with the instance settings of the demo for the length of a `with` block.

    With `shared_code` the daemon and the webserver share a code server, which costs much less. The instance knows the
    `known` topics from the start, as if the sensor had found them.
    """
    state = DemoState(home=home / "state")
    state.begin()
    config_file = state.dagster_home / "dagster.yaml"
    text = config_file.read_text().replace("max_concurrent_runs: 1", f"max_concurrent_runs: {runs_at_once}")
    text = text.replace("default_limit: 2", f"default_limit: {loads_at_once}")
    # The daemon looks into its queue each second instead of every five: these tests wait for dozens of runs.
    config_file.write_text(text.replace("  config:\n", "  config:\n    dequeue_interval_seconds: 1\n"))
    # The instance is opened before the processes start, because two processes cannot create its storage at once.
    with dg.DagsterInstance.from_config(str(state.dagster_home)) as instance:
        TopicStorage(instance=instance, prefix="penstock", cluster=MAIN).add(known)
        servers = Servers(
            home=home,
            dagster_home=state.dagster_home,
            settings=settings,
            port=free_port(),
            code_port=free_port() if shared_code else None,
            has_daemon=has_daemon,
        )
        with servers:
            stand = Stand(servers=servers, instance=instance)
            until(stand.answers, "the webserver")
            yield stand


_LOCATION_STATUS = """
{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {
  __typename ... on PythonError { message } } } } } }
"""
_LAUNCH = """
mutation ($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } }
  ... on RunConfigValidationInvalid { errors { message } } ... on PythonError { message } } }
"""
_TERMINATE = "mutation ($run: String!) { terminateRun(runId: $run) { __typename } }"
_PREVIEW = """
mutation ($selector: ScheduleSelector!, $now: Float!) { scheduleDryRun(selectorData: $selector, timestamp: $now) {
  __typename ... on DryRunInstigationTick { evaluationResult {
    skipReason runRequests { jobName assetSelection { path } tags { key value } } error { message } } } } }
"""
_TICKS = """
query ($selector: SensorSelector!) { sensorOrError(sensorSelector: $selector) {
  __typename ... on Sensor { sensorState { ticks(limit: 100) {
    status runIds skipReason cursor error { message }
    } } } } }
"""
