"""The checksum of messages before format 2 is that of zlib, with ISA-L and with tables."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.jit.scalars import read_only
from kafka_io.records.kernels import crc32

ROOT = Path(__file__).parents[3]
# Reads messages where isal's library is not to be found.
WITHOUT_ISAL = """
from isal import isal_zlib
isal_zlib.__file__ = "/nowhere"
from kafka_io.jit import isal_crc32
from tests.kafka_io.records.decoding import given, golden, read_rows
assert not isal_crc32.HAS_CRC32
for name in ("v0-none-kafka-python", "v1-gzip-kafka-python"):
    assert read_rows(golden(name)) == given(name)
print("read")
"""


@pytest.mark.slow
@settings(deadline=None)
@given(data=st.binary(max_size=100), start=st.integers(0, 20))
def test_the_tables_give_the_checksums_of_zlib_at_any_alignment(data: bytes, start: int) -> None:
    start = min(start, len(data))
    assert crc32.by_tables(read_only(data), start, len(data)) == zlib.crc32(data[start:])
    assert crc32.crc32(read_only(data), start, len(data)) == zlib.crc32(data[start:])


@pytest.mark.slow
@pytest.mark.parametrize("jit", ["0", "1"])
def test_messages_are_decoded_without_the_exported_function_of_isal(jit: str) -> None:
    run = subprocess.run(  # this machine code has a folder of its own in the cache of the user
        [sys.executable, "-c", WITHOUT_ISAL],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": jit},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("read\n", "")
