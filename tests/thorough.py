"""Chooses the test cases that `make test` leaves to `make thorough`: they repeat a law that another case tests.

Such a case has another seed, another version of Kafka's brokers, or another pair of parameters. Each law keeps at least
one case in `make test`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

_REPEATED_RELEASES = re.compile(r"[\[-](?:0\.9\.0\.1|0\.11\.0\.3|1\.1\.1)[\]-]")
"""What brokers of these versions speak, the version before or after them speaks too, except for some APIs."""


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of a test: `make test` has the first `count` of the cases, and `make thorough` has the others."""
    assert count > 0
    values = list(cases)
    return values[:count] + [pytest.param(value, marks=pytest.mark.thorough) for value in values[count:]]


def also(*values: object) -> Any:
    """The parameters of one case that only `make thorough` has."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def mark_repeated_releases(items: Iterable[pytest.Item]) -> None:
    """Mark the tests of real brokers of some versions, if the same test runs with other versions too."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.nodeid.startswith("tests/brokers/"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        repeated = [item for item in cases if _REPEATED_RELEASES.search(item.nodeid)]
        if len(repeated) < len(cases):
            for item in repeated:
                item.add_marker(pytest.mark.thorough)
