"""The same load through Spark Connect: no RDD, no SparkContext, our code sent as an artifact."""

import json
import subprocess
import sys

import pytest

from tests.live import LiveCluster, numbered

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]


def test_a_load_through_spark_connect(live: LiveCluster) -> None:
    """In a process of its own: a process has either a classic or a Connect session."""
    live.publish("clicks", numbered(1000))
    text = live.settings.read_text().replace('master = "local[2,2]"', 'remote = "local[2]"')
    live.settings.write_text(text)
    command = [sys.executable, "-m", "pipelines", "--settings", str(live.settings), "load", "clicks", "--json"]
    for rows in (1000, 0):
        done = subprocess.run(command, cwd=live.home, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        (load,) = json.loads(done.stdout)
        assert (load["error"], load["rows"]) == (None, rows)
