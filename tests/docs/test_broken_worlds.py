"""Each broken world of a removal of rows has a test, which exists and cites the fault of that world."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tests.docs.faults import guards
from tests.docs.pages import ROOT, section

_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| faults? ([^|]+) \| `([^|`]+)` \| `([^|`]+)` \|$", re.MULTILINE)


class World(NamedTuple):
    """A row of the table: its number, what is broken, the faults, and the test with its file."""

    number: str
    broken: str
    faults: str
    file: str
    name: str

    @property
    def test(self) -> str:
        """The test, as pytest names it."""
        return f"{self.file}::{self.name}"


def worlds() -> Sequence[World]:
    """The table of the page."""
    text = section(ROOT / "docs" / "testing.md", "Which broken worlds must a removal of rows survive?")
    return [World(*cells) for cells in _ROW.findall(text)]


def test_the_worlds_are_numbered_and_each_has_a_test_of_its_own() -> None:
    table = worlds()
    assert [int(world.number) for world in table] == list(range(1, len(table) + 1))
    assert len(table) >= 25
    assert len({world.test for world in table}) == len(table)


def test_the_test_of_a_world_exists_and_cites_its_fault() -> None:
    by_fault = guards()
    missing = [
        world for world in worlds() if not any(world.test in by_fault[fault] for fault in world.faults.split(", "))
    ]
    assert missing == []
