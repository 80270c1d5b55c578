"""A long run stops at a failure and names the file with its input."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_io.records.decoded_batch import DecodeLimits
from tests.fuzz import run as fuzz
from tests.fuzz.run import Failed, Kind

MIB = 1 << 20


def kind_of_input(
    check: Callable[[bytes, random.Random], str] = lambda _data, _rng: "read",
    read: Callable[[bytes, DecodeLimits], None] = lambda _data, _limits: None,
) -> Kind:
    return Kind(name="toy", make=lambda rng: rng.randbytes(8), check=check, read=read)


def broken(data: bytes, _rng: random.Random) -> str:
    raise KeyError(data[:2])


def greedy(_data: bytes, _limits: DecodeLimits) -> None:
    # The allocator keeps some released memory, so a smaller allocation might not let the process grow.
    bytearray(b"x") * (500 * MIB)


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (kind_of_input(check=broken), "KeyError"),
        (kind_of_input(read=greedy), "bytes of memory"),
    ],
)
def test_an_input_that_breaks_a_law_is_saved_and_reported(
    kind: Kind, match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "KINDS", (kind,))
    with pytest.raises(Failed, match=f"seed 7: .*{match}"):
        fuzz.attempt(7, tmp_path)
    (saved,) = tmp_path.iterdir()
    assert len(saved.read_bytes()) == 8


def test_an_input_that_takes_too_long_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "_SLOWEST_SECONDS", -1)
    monkeypatch.setattr(fuzz, "KINDS", (kind_of_input(),))  # a decoder might have to be compiled first
    with pytest.raises(Failed, match=r"\d\.\d\d s"):
        fuzz.attempt(7, tmp_path)


def test_a_run_without_a_failure_reports_its_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.run(0.3, 1, tmp_path) > 0
    assert "inputs from seed 1: " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_an_input_that_never_ends_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_data: bytes, _rng: random.Random) -> str:
        while True:
            pass

    monkeypatch.setattr(fuzz, "_ALARM_SECONDS", 0.1)
    monkeypatch.setattr(fuzz, "KINDS", (kind_of_input(check=endless),))
    with pytest.raises(Failed, match=r"no end after 0\.1 s of CPU time"):
        fuzz.attempt(7, tmp_path)
