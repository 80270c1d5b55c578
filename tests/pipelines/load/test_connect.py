"""The same load through Spark Connect: no RDD, no SparkContext, our code sent as an artifact."""

import json
import subprocess
import sys

import pytest

from tests.live import LiveCluster, numbered

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]


def test_a_load_through_spark_connect(live: LiveCluster) -> None:
    """The load runs in its own process, because a process has either a classic or a Connect session."""
    live.publish("clicks", numbered(1000))
    text = live.settings.read_text().replace('master = "local[2,2]"', 'remote = "local[2]"')
    live.settings.write_text(text)
    command = [sys.executable, "-m", "pipelines", "--settings", str(live.settings), "load", "clicks", "--json"]
    for rows in (1000, 0):
        process = subprocess.run(command, cwd=live.home, capture_output=True, text=True, timeout=120, check=False)
        assert process.returncode == 0, process.stderr + process.stdout
        (load,) = json.loads(process.stdout)["results"]
        assert (load["errors"], load["rows"]) == ([], rows)
