"""Each mistake in the list is noticed by the test beside it."""

import subprocess
import sys

import pytest

from tests.mutation.__main__ import ROOT
from tests.mutation.mistakes import mistakes


@pytest.mark.slow
def test_each_mistake_is_noticed_by_its_test() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutation", "--mistakes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    results = run.stdout.splitlines()
    for mistake in mistakes(ROOT):
        assert any(line.startswith(f"{mistake}: noticed by {mistake.test}") for line in results), f"{mistake}\n{run}"
    assert run.returncode == 0
