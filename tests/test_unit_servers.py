"""Servers of a unit start once, and end when the process takes another unit."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from tests import conftest
from tests.unit_servers import UnitServers

FIRST, SAME_UNIT = "tests/brokers/test_a.py::test_b[3.9.1]", "tests/brokers/test_c.py::test_d[3.9.1]"
OTHER_UNIT = "tests/brokers/test_a.py::test_b[2.8.2]"


class Started:
    """Counts the starts and the ends of servers."""

    def __init__(self) -> None:
        self.events: list[str] = []

    @contextmanager
    def server(self, name: str) -> Iterator[str]:
        """A server that notes its start and its end."""
        self.events.append(f"start {name}")
        yield name.upper()
        self.events.append(f"end {name}")


def tear_down(ended: str, following: str | None) -> None:
    """What pytest calls after a test."""
    items: list[Any] = [nodeid and SimpleNamespace(nodeid=nodeid) for nodeid in (ended, following)]
    hook = conftest.pytest_runtest_teardown(*items)
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(None)


def test_the_tests_of_a_unit_share_a_server() -> None:
    started, servers = Started(), UnitServers()
    assert [servers.shared("a", lambda: started.server("a")) for _ in range(3)] == ["A"] * 3
    assert servers.shared("b", lambda: started.server("b")) == "B"
    assert started.events == ["start a", "start b"]


@pytest.mark.parametrize(("following", "is_ended"), [(SAME_UNIT, False), (OTHER_UNIT, True), (None, True)])
def test_servers_end_with_their_unit(following: str | None, is_ended: bool) -> None:
    started, servers = Started(), UnitServers()
    servers.shared("a", lambda: started.server("a"))
    with patch.object(conftest, "UNIT_SERVERS", servers):
        tear_down(FIRST, following)
    assert started.events == ["start a", *(["end a"] if is_ended else [])]
    servers.shared("a", lambda: started.server("a"))
    assert started.events.count("start a") == (2 if is_ended else 1)
