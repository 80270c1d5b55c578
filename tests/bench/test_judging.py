"""A bound is missed only if every round misses it; `make bench` runs all parts, and then ends with an error."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.bench.judging import missed_ratios
from tests.docs.pages import ROOT

QUICK = [
    "",
    "avro_values",
    "message_values",
    "increment_cost",
    "state_cost",
    "day_cost",
    "store_cost",
    "many_slices",
    "erase_cost",
    "hash_cost",
]
PARTS = [*QUICK, "cold_start", "many_topics"]


def test_a_bound_that_one_round_keeps_is_kept() -> None:  # fault F16
    slow, quiet = {"ours": 130.0, "other": 100.0}, {"ours": 99.0, "other": 90.0}
    assert list(missed_ratios([slow, quiet], [("ours", "other", 1.1)])) == []
    assert list(missed_ratios([slow, slow], [("ours", "other", 1.1)])) == [
        "ours: 1.300 of the CPU of other in the best round, and not 1.100 at most"
    ]


@pytest.mark.parametrize("failing", [(), ("avro_values", "store_cost")])
def test_all_parts_run_and_the_error_comes_at_the_end(failing: tuple[str, ...], tmp_path: Path) -> None:  # fault F16
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\necho ran $2 $3\ncase $2 in {'|'.join(failing) or 'none'}) exit 1;; esac\n".replace(
            "case $2", "case ${2#tests.bench.}"
        )
    )
    python.chmod(0o755)
    command = ["make", "-s", "bench", "QUICK=1", f"BIN={tmp_path}", "RUN="]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    ran = [
        line.split()[1].removeprefix("tests.bench").removeprefix(".")
        for line in done.stdout.splitlines()
        if line[:3] == "ran"
    ]
    assert ran == PARTS
    assert [line for line in done.stdout.splitlines() if "--quick" in line] == [
        "ran tests.bench --quick",
        "ran tests.bench.state_cost --quick",
        "ran tests.bench.many_topics --quick",
    ]
    assert (done.returncode != 0) is bool(failing)
    assert all(f"tests.bench.{name}" in done.stderr for name in failing)
