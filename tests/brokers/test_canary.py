"""A secret exists only in its file or variable, never in the output of Spark, Dagster, the lake or a terminal.

See faults X01, X02.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.brokers.secure import SecureBroker

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

WRONG = "canary-of-nobody"
RECORDS = [(b"key", b"value %d" % number) for number in range(50)]
SETTINGS = """\
lake = "seen/lake"

[caps]
slice_records = 10
driver_slices = 1

[clusters.right]
bootstrap = "{bootstrap}"
security.tls.ca = "{authority}"
security.sasl = {{ mechanism = "PLAIN", username = "alice", password = "env:CANARY_RIGHT" }}

[clusters.wrong]
bootstrap = "{bootstrap}"
security.tls.ca = "{authority}"
security.sasl = {{ mechanism = "SCRAM-SHA-256", username = "alice", password = "env:CANARY_WRONG" }}

[clusters.changing]
bootstrap = "{bootstrap}"
security.tls.ca = "{authority}"
security.sasl = {{ mechanism = "PLAIN", username = "alice", password = "file:password" }}

[clusters.again]
bootstrap = "{bootstrap}"
security.tls.ca = "{authority}"
security.sasl = {{ mechanism = "SCRAM-SHA-512", username = "alice", password = "env:CANARY_RIGHT" }}

[spark]
master = "local[2,2]"
"spark.ui.port" = 0
"spark.eventLog.enabled" = true
"spark.eventLog.compress" = false
"spark.eventLog.dir" = "{events}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutput:
    """All files that the loads wrote, with their content."""

    folder: Path
    files: dict[Path, bytes]

    def containing(self, text: str, *, below: str = "") -> list[Path]:
        """The files that contain `text`."""
        return [file for file, data in self.files.items() if text.encode() in data and below in str(file)]


@pytest.fixture
def load_output(secure: SecureBroker, topic: str, tmp_path: Path) -> LoadOutput:
    """The output of all kinds of loads, with right and wrong passwords."""
    secure.broker.create_topic(topic)
    secure.broker.produce(topic, RECORDS)
    output_folder = tmp_path / "seen"
    for name in ("events", "dagster"):
        (output_folder / name).mkdir(parents=True)
    (tmp_path / "password").write_text(secure.password)
    (tmp_path / "wrong password").write_text(WRONG)
    values = {
        "bootstrap": secure.bootstrap("SASL_SSL"),
        "authority": secure.authority,
        "events": output_folder / "events",
    }
    (tmp_path / "penstock.toml").write_text(SETTINGS.format(**values))
    (output_folder / "dagster" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    names = {"PENSTOCK_SETTINGS": str(tmp_path / "penstock.toml"), "DAGSTER_HOME": str(output_folder / "dagster")}
    secrets = {"CANARY_RIGHT": secure.password, "CANARY_WRONG": WRONG}
    with (output_folder / "stdout").open("wb") as stdout, (output_folder / "stderr").open("wb") as stderr:
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.brokers.canary_run", str(tmp_path), topic],
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **names, **secrets},
            cwd=Path(__file__).parents[2],
            timeout=280,
            check=False,
        )
    files = {file: file.read_bytes() for file in sorted(output_folder.rglob("*")) if file.is_file()}
    return LoadOutput(folder=tmp_path, files=files)


def test_no_file_log_or_page_of_a_load_contains_a_secret(
    load_output: LoadOutput, secure: SecureBroker, topic: str
) -> None:
    assert secure.password.startswith("canary-")
    assert load_output.containing("canary-") == []

    # The search is meaningful only if every load ran as far as intended and wrote its output.
    stdout = (load_output.folder / "seen" / "stdout").read_text()
    assert stdout.count("AuthenticationFailed") >= 3
    assert "pipelines/fetch/fetch.py" in stdout, "the output lacks the stack trace of a worker"
    for cluster in ("right", "again"):
        assert DeltaTable(load_output.folder / "seen" / "lake" / cluster / topic).to_pyarrow_table().num_rows == len(
            RECORDS
        )
    assert load_output.containing("SparkListenerJobStart", below="events")
    assert load_output.containing("AuthenticationFailed", below="dagster")
    pages = [file for file in load_output.files if file.name.startswith("ui-")]
    assert any(
        json.loads(load_output.files[page])["sparkProperties"] for page in pages if load_output.files[page][:1] == b"{"
    )
