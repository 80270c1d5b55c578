"""The cost of a hashed column is measured beside a load without rules, of the same records."""

from pathlib import Path

from deltalake import DeltaTable

from tests.bench.hash_cost import BOUNDS, FIELDS, measure, report
from tests.bench.judging import missed_ratios


def test_each_variant_is_loaded_in_each_round(tmp_path: Path) -> None:
    rounds = measure(tmp_path, records=500, rounds=2)
    assert [sorted(round_) for round_ in rounds] == [sorted(FIELDS)] * 2
    assert all(seconds > 0 for round_ in rounds for seconds in round_.values())
    assert all(f"| {name} |" in report(rounds) for name in FIELDS)
    hashed = {"country": 0, "session": 0}
    for log in tmp_path.glob("*/*/events/_delta_log"):
        [row] = DeltaTable(str(log.parent)).to_pyarrow_table().slice(0, 1).to_pylist()
        for name in hashed:
            hashed[name] += row[name].startswith("k1:")
    assert hashed == {"country": 3, "session": 3}


def test_the_bounds_are_about_ratios_in_a_round() -> None:
    plain, repeated, distinct = FIELDS
    slow = {plain: 1.0, repeated: 1.2, distinct: 1.9}
    assert len(list(missed_ratios([slow], BOUNDS))) == 2
    assert list(missed_ratios([slow, {plain: 1.0, repeated: 1.1, distinct: 1.7}], BOUNDS)) == []
