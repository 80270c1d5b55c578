"""A sample has its share of the tests, the same ones each time, and begins no test too late."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sampling import ROOT, Sample, commit_or_day

pytestmark = pytest.mark.slow  # each test runs pytest

CONFTEST = """\
from tests.sampling import PLUGIN, Sample, add_options, sample_of
def pytest_addoption(parser):
    add_options(parser)
def pytest_configure(config):
    config.pluginmanager.register(Sample.of(config), PLUGIN)
def pytest_collection_modifyitems(config, items):
    sample_of(config).choose(config, items)
"""
TESTS = """\
import time
import pytest
@pytest.mark.parametrize("number", range(40))
def test_it(number):
    time.sleep({sleep_s})
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Runs pytest on 40 tests with the given options; returns its output."""

    def run(*options: str, sleep_s: float = 0) -> str:
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "test_it.py").write_text(TESTS.format(sleep_s=sleep_s))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            *options,
            "test_it.py",
        ]
        return subprocess.run(
            command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
        ).stdout

    return run


def test_the_samples_of_many_commits_have_each_test() -> None:
    tests = [f"test_a[{number}]" for number in range(1000)]
    samples = [Sample(share=8, name=str(commit)) for commit in range(100)]
    counts = [sum(map(sample.has, tests)) for sample in samples]
    assert 80 < min(counts) <= max(counts) < 175
    assert all(any(sample.has(test) for sample in samples) for test in tests)
    assert {sample.has("test_a") for sample in (Sample(share=8, name="c") for _ in range(3))} in ({True}, {False})


def test_without_a_share_all_tests_run_and_units_that_take_long_begin_first() -> None:
    everything = Sample(share=1, name="")
    tests = ["tests/kafka_io/test_a.py::test_b", "tests/brokers/test_a.py::test_b"]
    assert all(map(everything.has, tests))
    assert sorted(tests, key=everything.rank_of) == tests[::-1]


def test_a_sample_has_an_order_of_its_own_in_which_scenarios_of_minutes_begin_first() -> None:
    tests = ["tests/kafka_io/test_a.py::test_b", "tests/brokers/test_a.py::test_b", "tests/ui/test_a.py::test_b"]
    orders = [tuple(sorted(tests, key=Sample(share=8, name=str(commit)).rank_of)) for commit in range(20)]
    assert len(set(orders)) == 2
    assert {first for first, *_ in orders} == {tests[-1]}


def test_the_commit_chooses_the_sample() -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert commit_or_day() == head.strip() or not head


def test_processes_run_a_share_that_the_name_chooses(run: Callable[..., str]) -> None:
    sample = Sample(share=4, name="some commit")
    count = sum(sample.has(f"test_it.py::test_it[{number}]") for number in range(40))
    output = run("-n", "2", "--share=4", "--sample-of=some commit")
    assert "sample: one of 4 tests, --sample-of=some commit" in output
    assert f"= {count} passed in" in output


@pytest.mark.parametrize("workers", ["0", "2"])
def test_no_test_begins_too_late(run: Callable[..., str], workers: str) -> None:
    output = run("-n", workers, "--begin-within=0.5", sleep_s=0.2)
    *_, line = (line for line in output.splitlines() if "did not begin" in line)
    late, *_ = line.split(" tests did not begin within 0.5 s")
    assert 20 < int(late) < 39
    assert f"= {40 - int(late)} passed in" in output
