"""The comparison of two ways alternates their order, and adds up their CPU time."""

from dataclasses import dataclass, field

import pytest

from tests.bench.comparison import Comparison, Pair, Timer, compare


@dataclass(slots=True)
class Work:
    """Fake work with its own clock. Ours takes 3 s, of which 2 s are inside the timed calls; the limit takes 2 s."""

    now_s: float = 0.0
    calls: list[str] = field(default_factory=list)
    inside: Timer = field(init=False)

    def __post_init__(self) -> None:
        self.inside = Timer(self.clock)

    def clock(self) -> float:
        """The current time. It moves only in `spend`."""
        return self.now_s

    def spend(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

    def pair(self, name: str) -> Pair:
        """A slice that takes 100 s to prepare, 3 s for ours and 2 s for the limit."""

        def prepare() -> None:
            self.calls.append(f"prepare {name}")
            self.spend(100)

        def ours() -> None:
            self.calls.append(f"ours {name}")
            self.inside.around(self.spend)(2)
            self.spend(1)

        def limit() -> None:
            self.calls.append(f"limit {name}")
            self.spend(2)

        return Pair(records=10, prepare=prepare, ours=ours, limit=limit)


def test_all_measured_passes_are_added_up_and_the_first_pass_is_not_measured() -> None:
    work = Work()
    comparison = compare([work.pair("a"), work.pair("b")], 3, work.inside)
    assert comparison == Comparison(pairs=6, records=60, ours_cpu_s=18, limit_cpu_s=12, inside_cpu_s=12)
    assert (comparison.ratio, comparison.inside_ratio) == (1.5, 1.5)
    assert len(work.calls) == 3 * 2 * (1 + 3)


def test_each_way_runs_first_equally_often() -> None:
    work = Work()
    compare([work.pair("a")], 2, work.inside)
    assert work.calls == [
        *("prepare a", "ours a", "limit a"),  # not measured
        *("prepare a", "ours a", "limit a"),
        *("prepare a", "limit a", "ours a"),
    ]


def test_the_order_also_alternates_between_the_slices_of_a_pass() -> None:
    work = Work()
    compare([work.pair("a"), work.pair("b")], 1, work.inside)
    assert work.calls[-6:] == ["prepare a", "ours a", "limit a", "prepare b", "limit b", "ours b"]


def test_a_timer_counts_calls_that_raise() -> None:
    work = Work()

    def fail() -> None:
        work.spend(4)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        work.inside.around(fail)()
    assert work.inside.total_s == 4


def test_rounds_are_added_up() -> None:
    first = Comparison(pairs=1, records=10, ours_cpu_s=3, limit_cpu_s=2, inside_cpu_s=2.5)
    second = Comparison(pairs=2, records=20, ours_cpu_s=5, limit_cpu_s=4, inside_cpu_s=3.5)
    assert first + second == Comparison(pairs=3, records=30, ours_cpu_s=8, limit_cpu_s=6, inside_cpu_s=6)


def test_a_comparison_is_read_from_the_last_line_printed() -> None:
    printed = (
        b'something else\n{"pairs": 1, "records": 10, "ours_cpu_s": 3.0, "limit_cpu_s": 2.0, "inside_cpu_s": 2.5}\n'
    )
    assert Comparison.parse(printed) == Comparison(pairs=1, records=10, ours_cpu_s=3, limit_cpu_s=2, inside_cpu_s=2.5)
