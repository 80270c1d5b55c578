"""Each measurement of very large tables runs, and its memory has a bound."""

from pathlib import Path

import pytest

from tests.bench import scale
from tests.bench.measure import Usage
from tests.bench.scale import MAX_PEAK_MB, MEASURES, VERIFY, deltalake_commit, missed


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_each_measurement_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fault L17
    for constant, value in {"PARTITIONS": 2, "FILES": 20, "COMMITS": 200}.items():
        monkeypatch.setattr(scale, constant, value)
    MEASURES[name](tmp_path)()


def test_each_measurement_has_a_bound_for_its_memory() -> None:
    ours = [name for name, measurement in MEASURES.items() if measurement is not deltalake_commit]
    assert MAX_PEAK_MB.keys() == {*ours, VERIFY}


def test_a_bound_is_missed_above_its_memory() -> None:
    allowed = {name: Usage(wall_s=1, cpu_s=1, peak_mb=bound) for name, bound in MAX_PEAK_MB.items()}
    assert list(missed(allowed)) == []
    grown = {**allowed, VERIFY: Usage(wall_s=1, cpu_s=1, peak_mb=MAX_PEAK_MB[VERIFY] + 1)}
    assert list(missed(grown)) == [f"{VERIFY}: 301 MB, allowed are 300"]
