"""The tables of cases, loaders and bounds are consistent."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.bench.bounds import (
    _OF_USAGES,
    BOUNDS,
    EVENT_TIMES_BY_OURS,
    LAST_MESSAGES_BY_OURS,
    OURS_BY_INSIDE,
    OURS_BY_LIMIT,
)
from tests.bench.cases import ALL, Job
from tests.bench.loaders import LOADERS, Loader


def test_every_loader_of_a_case_is_known() -> None:
    assert {name for case in ALL for name in case.loaders} <= LOADERS.keys()


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS.keys())
def test_the_module_of_every_loader_exists(loader: Loader) -> None:
    assert find_spec(f"tests.bench.peers.{loader.module}") is not None


def test_partitions_of_a_topic_are_equally_long() -> None:
    assert all(case.records % case.partitions == 0 for case in ALL)


def test_every_ratio_with_a_bound_is_measured() -> None:
    for bound in BOUNDS:
        assert bound.case in ALL
        if bound.ratio in _OF_USAGES:
            assert _OF_USAGES[bound.ratio][0] <= set(bound.case.loaders)
        elif bound.ratio in {OURS_BY_LIMIT, OURS_BY_INSIDE, LAST_MESSAGES_BY_OURS, EVENT_TIMES_BY_OURS}:
            assert bound.case.compares_limit
        else:
            assert bound.ratio in bound.case.loaders


def test_a_job_reaches_its_process_unchanged() -> None:
    job = Job(
        bootstrap="127.0.0.1:1", topic="t", records=4, folder=Path("/x"), warm_up="w", jars="a.jar,b.jar", registry="u"
    )
    assert Job.of(job.as_dict()) == job
