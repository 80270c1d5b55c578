"""A secret is only where it lies: not in what Spark, Dagster, the lake or a terminal keep of a load.

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

WRONG = "canary-that-opens-nothing"
RECORDS = [(b"key", b"value %d" % number) for number in range(50)]
SETTINGS = """\
lake = "seen/lake"

[caps]
slice_records = 10

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
class Kept:
    """Everything that was kept of the loads, by file."""

    folder: Path
    files: dict[Path, bytes]

    def holding(self, text: str, *, below: str = "") -> list[Path]:
        """The files that hold `text`."""
        return [file for file, data in self.files.items() if text.encode() in data and below in str(file)]


@pytest.fixture
def kept(locked: SecureBroker, topic: str, tmp_path: Path) -> Kept:
    """What all kinds of loads leave, with passwords that are right and wrong."""
    locked.broker.create_topic(topic)
    locked.broker.produce(topic, RECORDS)
    seen = tmp_path / "seen"
    for name in ("events", "dagster"):
        (seen / name).mkdir(parents=True)
    (tmp_path / "password").write_text(locked.password)
    (tmp_path / "wrong password").write_text(WRONG)
    place = {"bootstrap": locked.bootstrap("SASL_SSL"), "authority": locked.authority, "events": seen / "events"}
    (tmp_path / "penstock.toml").write_text(SETTINGS.format(**place))
    (seen / "dagster" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    names = {"PENSTOCK_SETTINGS": str(tmp_path / "penstock.toml"), "DAGSTER_HOME": str(seen / "dagster")}
    secrets = {"CANARY_RIGHT": locked.password, "CANARY_WRONG": WRONG}
    with (seen / "stdout").open("wb") as stdout, (seen / "stderr").open("wb") as stderr:
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.brokers.canary_run", str(tmp_path), topic],
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, **names, **secrets},
            cwd=Path(__file__).parents[2],
            timeout=280,
            check=False,
        )
    files = {file: file.read_bytes() for file in sorted(seen.rglob("*")) if file.is_file()}
    return Kept(folder=tmp_path, files=files)


def test_no_secret_is_kept_by_anything_that_a_load_touches(kept: Kept, locked: SecureBroker, topic: str) -> None:
    assert locked.password.startswith("canary-")
    assert kept.holding("canary-") == []

    # We looked where there was something to see: every load came as far as it was meant to.
    stdout = (kept.folder / "seen" / "stdout").read_text()
    assert stdout.count("AuthenticationFailed") >= 3
    assert "pipelines/loading/fetch.py" in stdout, "the trace of a worker"
    for cluster in ("right", "again"):
        assert DeltaTable(kept.folder / "seen" / "lake" / cluster / topic).to_pyarrow_table().num_rows == len(RECORDS)
    assert kept.holding("SparkListenerJobStart", below="events")
    assert kept.holding("AuthenticationFailed", below="dagster")
    pages = [file for file in kept.files if file.name.startswith("ui-")]
    assert any(json.loads(kept.files[page])["sparkProperties"] for page in pages if kept.files[page][:1] == b"{")
