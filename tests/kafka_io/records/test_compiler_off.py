"""The kernels are also correct as plain Python: their tests run again in a process with numba's compiler off."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.thorough import first

ROOT = Path(__file__).parents[3]
JIT, RECORDS, VALUES, FUZZ = "tests/kafka_io/jit", "tests/kafka_io/records", "tests/kafka_io/values", "tests/fuzz"
EXAMPLES = (
    f"{RECORDS}/test_v07_golden.py",
    f"{RECORDS}/test_decode_golden.py",
    f"{JIT}/test_scalars.py",
    f"{RECORDS}/test_decode_hostile.py::test_a_key_that_leaves_no_room_for_the_length_of_a_value_is_corrupt",
    f"{VALUES}/test_framing.py",
    f"{VALUES}/avro/test_decoder.py::test_a_value_that_nobody_should_have_sent_fails_at_once",
)
# Thousands of random inputs take long without machine code.
SEARCHES = (
    f"{RECORDS}/test_v07_kernels.py::test_any_nested_set_gives_the_rows_of_the_oracle",
    f"{RECORDS}/test_kernels.py::test_any_log_gives_the_rows_of_the_oracle",
    f"{FUZZ}/test_mutations.py::test_a_mutated_log_gives_typed_errors_or_the_rows_of_the_oracle[0]",
    f"{VALUES}/avro/test_differential.py",
    f"{FUZZ}/test_mutations.py::test_a_mutated_set_of_0_7_gives_typed_errors_or_the_rows_of_the_oracle",
    f"{FUZZ}/test_typed_values.py",
    f"{VALUES}/protobuf/test_protobuf_differential.py",
)


@pytest.mark.slow
@pytest.mark.parametrize("laws", first(1, [EXAMPLES, SEARCHES]), ids=["examples", "searches"])
def test_the_laws_hold_with_the_compiler_off(laws: Sequence[str]) -> None:
    """Numba widens integers; plain Python with numpy scalars does not, so an overflow may show only here (habit 7)."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *laws],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
