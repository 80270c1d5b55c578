"""The driver plans, sends and commits every slice, and a missed bound is an error."""

import subprocess
from pathlib import Path

import pytest

from tests.bench.many_slices import CORES, MAX_MB, main, measure


@pytest.mark.slow
def test_every_slice_is_planned_and_committed_in_steps(tmp_path: Path) -> None:
    cost = measure(tmp_path, slices=2 * CORES, partitions=10)
    assert (cost.slices, cost.steps) == (2 * CORES, 2)
    assert cost.grown_mb < MAX_MB
    log = tmp_path / "many" / "main" / "clicks" / "_delta_log"
    assert len(list(log.glob("*.json"))) == 3


@pytest.mark.parametrize("grown_mb", [MAX_MB, MAX_MB + 1])
def test_the_bench_fails_above_its_bound(
    grown_mb: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = f'{{"slices": 100000, "steps": 100, "grown_mb": {grown_mb}, "cpu_s": 1.0}}\n'.encode()
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, printed))
    if grown_mb > MAX_MB:
        with pytest.raises(SystemExit, match=f"needs {grown_mb} MB for 100,000 slices, allowed are {MAX_MB}"):
            main()
    else:
        main()
    assert f"| 100,000 | 100 | 100 | {grown_mb} MB | 1.0 |" in capsys.readouterr().out
