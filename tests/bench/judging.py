"""Bounds for ratios within a round: they hold on slow and on busy machines.

Other work on the machine moves every figure of a round, and seldom all rounds in the same direction. So a bound is
missed only if every round misses it. A real change moves all rounds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

RatioBound = tuple[str, str, float]
"""A variant takes at most so many times the CPU of another."""


def missed_ratios(rounds: Sequence[Mapping[str, float]], bounds: Iterable[RatioBound]) -> Iterator[str]:
    """The bounds that every round misses, as sentences. A round has the CPU of each variant (fault F16)."""
    for name, other, most in bounds:
        best = min(round_[name] / round_[other] for round_ in rounds)
        if best > most:
            yield f"{name}: {best:.3f} of the CPU of {other} in the best round, and not {most:.3f} at most"
