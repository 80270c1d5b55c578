"""The difference of two ledger states names exactly the rows that differ; compared row by row in random histories."""

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.increments.difference import Entries, LedgerDifference, LoadedSpan, ledger_difference
from pipelines.table.exact_sets import ExactSets
from tests.pipelines.increments.ledger_histories import KINDS, LedgerHistory, LedgerRow, Rows, place_of
from tests.thorough import first

SETS = ExactSets(read=lambda path: path.encode())
"""Reads the sets that are in the entries."""


def difference_of(entries: Entries, since: int, version: int) -> LedgerDifference:
    return ledger_difference(entries, since, version, SETS.within)


def rows_of(spans: Iterable[LoadedSpan], rows: Rows) -> Rows:
    """The rows that belong to a span, as a reader filters them."""
    spans = list(spans)
    return frozenset(row for row in rows if any(is_row_of(span, row) for span in spans))


def is_row_of(span: LoadedSpan, row: LedgerRow) -> bool:
    return (
        row.partition == span.offsets.partition
        and span.offsets.start <= row.offset < span.offsets.stop
        and row.loaded_at_us in span.loaded_at_us
    )


def places(rows: Iterable[LedgerRow]) -> set[tuple[object, ...]]:
    return {place_of(row) for row in rows}


def check(history: LedgerHistory, since: int, version: int) -> None:
    """Compare the difference of two versions with that of their rows."""
    difference = difference_of(history.newest_first(version), since, version)
    before, now = history.rows[since] if since >= 0 else frozenset(), history.rows[version]
    added, removed = rows_of(difference.added, now), rows_of(difference.removed, before)
    erased = rows_of(difference.erased, before)
    assert added == now - before
    # What was made of retired rows stays.
    assert removed == {row for row in before - now if place_of(row) not in history.retired[version]}
    # Where rows were erased, a cut log may have other ones now.
    replaced = places(rows_of((*difference.replaced, *difference.left_of_erased), now))
    # A place that had no row may have had one that was seen before: so what was made of it is replaced.
    gone = history.retired[since] | history.erased[since] if since >= 0 else frozenset()
    assert replaced - gone == places(added) & places(removed)
    assert places(rows_of(difference.taken_back, before)) == places(removed) - places(added) - places(erased)


# fault N43
@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=14),
    seed=st.integers(0, 2**32),
    looks=st.tuples(st.integers(-1, 20), st.integers(0, 20)),
)
def test_the_difference_is_that_of_the_rows(kinds: list[str], seed: int, looks: tuple[int, int]) -> None:
    history = LedgerHistory.of(kinds, Random(seed))
    version = min(looks[1], history.version)
    check(history, min(looks[0], version), version)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(4, range(10)))
def test_every_pair_of_versions_of_a_long_history_has_its_difference(seed: int) -> None:
    random = Random(seed)
    history = LedgerHistory.of(random.choices(KINDS, k=25), random)
    for version in range(history.version + 1):
        for since in range(-1, version + 1):
            check(history, since, version)


@pytest.mark.parametrize("seed", range(10))
def test_replays_of_older_versions_are_understood(seed: int) -> None:
    """Entries of older versions do not name the rows that a replay fetched. Their ranges come first in the entry."""
    random = Random(seed)
    kinds = [kind for kind in KINDS if kind != "redecode"]
    history = LedgerHistory.of(random.choices(kinds, k=25), random, with_written=False)
    for since in range(-1, history.version + 1):
        check(history, since, history.version)


def test_a_redecode_of_an_older_version_may_have_changed_all_rows() -> None:
    history = LedgerHistory.of(["load", "load", "redecode", "load"], Random(1), with_written=False)
    difference = difference_of(history.newest_first(4), 2, 4)
    assert rows_of(difference.withdrawn, history.rows[2]) == history.rows[2]
    assert places(rows_of(difference.replaced, history.rows[4])) == places(history.rows[2])


def test_only_the_entries_down_to_the_older_version_are_read() -> None:
    history = LedgerHistory.of(["load"] * 50, Random(1))
    read = []

    def counted() -> Iterable[tuple[int, object]]:
        for version, entry in history.newest_first(50):
            read.append(version)
            yield version, entry

    difference_of(counted(), 45, 50)  # type: ignore[arg-type] # entries
    assert read == [50, 49, 48, 47, 46, 45]


def test_a_compaction_makes_no_difference() -> None:
    history = LedgerHistory.of(["load", "compaction", "compaction"], Random(1))
    assert difference_of(history.newest_first(3), 1, 3) == difference_of(iter(()), -1, 0)


def test_a_recreated_topic_restarts() -> None:
    history = LedgerHistory.of(["load", "restart", "load"], Random(1))
    difference = difference_of(history.newest_first(3), 1, 3)
    assert (difference.new, difference.removed) == ((), ())
    assert rows_of(difference.restarted, history.rows[3]) == history.rows[3] - history.rows[1]
    later = difference_of(history.newest_first(3), 2, 3)
    assert later.restarted == ()
    assert rows_of(later.new, history.rows[3]) == history.rows[3] - history.rows[2]
