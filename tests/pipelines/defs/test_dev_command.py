"""`dagster dev` starts all programs together, with the module that the page of Dagster names."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from resources.machines.processes import dying_with_parent, end
from resources.settings.settings import PATH_VARIABLE
from tests.brokers.ports import free_ports
from tests.ui.waiting import until

QUERY = "{workspaceOrError {... on Workspace {locationEntries {name locationOrLoadError {__typename}}}}}"


def locations(port: int) -> dict[str, str]:
    """The code locations of the webserver, and whether they were loaded; none while it does not answer."""
    body = json.dumps({"query": QUERY}).encode()
    request = Request(f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"})
    with suppress(URLError), urlopen(request, timeout=30) as answer:
        entries: list[dict[str, Any]] = json.load(answer)["data"]["workspaceOrError"]["locationEntries"]
        loaded = ((entry["name"], entry["locationOrLoadError"]) for entry in entries)
        return {name: location["__typename"] for name, location in loaded if location}
    return {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_command_starts_all_programs(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    settings = tmp_path / "penstock.toml"
    settings.write_text('lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:1"\n')
    command = ["dagster", "dev", "-m", "pipelines.definitions", "-h", "127.0.0.1", "-p", str(port)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={**os.environ, "DAGSTER_HOME": str(tmp_path), PATH_VARIABLE: str(settings)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=dying_with_parent(),  # noqa: PLW1509 - two system calls, looked up before the fork
        )
    try:
        until(lambda: locations(port), "the code location")
        assert locations(port) == {"pipelines.definitions": "RepositoryLocation"}
    finally:
        end(process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
