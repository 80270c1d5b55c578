"""All of a world follows from its seed, so the command that a failed run prints repeats the world that broke a law."""

import shlex
from collections.abc import Sequence
from unittest.mock import patch

import pytest

from pipelines.plan import valid_through
from tests.simulation import __main__ as command
from tests.simulation.__main__ import BY_SEED
from tests.simulation.world import DAYS, World

pytestmark = pytest.mark.crash
_SEEDS = range(500)


def _text_of_failure(arguments: Sequence[str]) -> str:
    """The text with which a run ends that finds a broken law. It begins with few lost answers."""
    with patch.object(command, "_LOST_ANSWERS", 1), pytest.raises(SystemExit) as ended:
        command.main(arguments)
    return str(ended.value)


def test_the_printed_command_repeats_the_world_that_broke_a_law() -> None:
    """Only a world with event times counts late rows, and it must have them also as the first world of a run."""
    first = next(seed for seed in _SEEDS if [_has_times(seed + number) for number in range(3)] == [False, False, True])
    with patch.object(valid_through, "late_rows", lambda _: {}):
        text = _text_of_failure(["--days", str(300 * DAYS), "--seed", str(first)])
        *_, again = text.splitlines()
        name, _, printed = again.partition(": python -m tests.simulation ")
        assert name == "run it again"
        assert _text_of_failure(shlex.split(printed)) == text
    assert text.startswith("seed ")
    assert not text.startswith(f"seed {first},")


def _has_times(seed: int) -> bool:
    return World(seed, **BY_SEED).oracle.times is not None


def test_seeds_decide_about_each_kind_independently() -> None:
    worlds = [World(seed, **BY_SEED) for seed in range(200)]
    kinds = {(world.oracle.times is not None, world.spark is not None, world.has_first_answers) for world in worlds}
    assert len(kinds) == 2**3
    assert {world.is_skewed for world in worlds} == {False, True}
