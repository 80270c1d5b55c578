"""Kernels are sent in a zip archive, and processes with the same source share one compilation."""

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_io.jit import compiling

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from kafka_io.records.v07 import decoder as v07_decoder
from kafka_io.records.kernels import v07_messages as kernels
from kafka_io.records.build import message
assert kernels.__file__.startswith(sys.argv[1])
v07_decoder.warm()
(decoded,) = v07_decoder.decode_v07(message(b"x"), base=0)
assert decoded.batch.num_rows == 1
stats = kernels.decode.stats
print("compiled", sum(stats.cache_misses.values()), "loaded", sum(stats.cache_hits.values()))
"""
# The smallest kernel, which compiles fast: these tests are about the folder.
SMALL = """
import sys
sys.path.insert(0, sys.argv[1])
from kafka_io.jit.scalars import read_only
from kafka_io.records.kernels import v07_messages as kernels
assert kernels.__file__.startswith(sys.argv[1])
assert kernels.measure(read_only(b""))[1:] == (0, 0)
stats = kernels.measure.stats
print("compiled", sum(stats.cache_misses.values()), "loaded", sum(stats.cache_hits.values()))
"""
COMPILED, LOADED = "compiled 1 loaded 0", "compiled 0 loaded 1"


def shipped(folder: Path) -> Path:
    """A zip of the package in `folder`; each application of Spark has its own."""
    folder.mkdir()
    target = folder / "penstock.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted((ROOT / "kafka_io").rglob("*.py")):
            archive.write(file, file.relative_to(ROOT))
    return target


def run(code: Path, program: str = PROGRAM, **environment: str) -> str:
    """The output of `program` with `code` on its path; only `environment` says where caches are."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "PYTHON", "XDG"))}
    result = subprocess.run(
        [sys.executable, "-c", program, str(code)],
        cwd=code.parent,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.slow
def test_zips_of_the_same_kernels_share_one_compilation(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(shipped(tmp_path / "first"), NUMBA_CACHE_DIR=cache) == COMPILED
    assert run(shipped(tmp_path / "second"), NUMBA_CACHE_DIR=cache) == LOADED


@pytest.mark.slow
def test_the_default_is_the_cache_of_the_user(tmp_path: Path) -> None:
    code = shipped(tmp_path / "code")
    assert run(code, SMALL, HOME=str(tmp_path)) == COMPILED
    assert run(code, SMALL, HOME=str(tmp_path)) == LOADED


@pytest.mark.slow
def test_kernels_run_without_a_writable_cache(tmp_path: Path) -> None:
    assert run(shipped(tmp_path / "code"), SMALL, NUMBA_CACHE_DIR="/dev/null/cache") == COMPILED


LATER = """
import sys
sys.path.insert(0, sys.argv[1])
from kafka_io.records import decoder
from kafka_io.records.kernels import legacy_messages, record_batches
decoder.warm()
stats = [kernel.stats for kernel in (
    record_batches.list_batches, record_batches.decode, legacy_messages.measure, legacy_messages.decode
)]
print("compiled", *(sum(each.cache_misses.values()) for each in stats))
"""


@pytest.mark.slow
@pytest.mark.thorough  # test_zips_of_the_same_kernels_share_one_compilation: all kernels are compiled in the same way
def test_the_kernels_of_later_formats_are_compiled_once_too(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(shipped(tmp_path / "first"), LATER, NUMBA_CACHE_DIR=cache) == "compiled 1 1 1 1"
    assert run(shipped(tmp_path / "second"), LATER, NUMBA_CACHE_DIR=cache) == "compiled 0 0 0 0"


PACKAGE = ROOT / "kafka_io"
STAMPED_OTHERWISE = {"jit/compiling.py", "jit/isal_crc32.py"}
"""The first gives no machine code. The hash contains whether the second found the function of isal."""


def imported(file: Path) -> Iterator[str]:
    """The files of this package that a module imports from."""
    for node in ast.walk(ast.parse(file.read_text())):
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if module and module.startswith("kafka_io."):
            yield f"{module.removeprefix('kafka_io.').replace('.', '/')}.py"


def test_the_name_of_the_cache_depends_on_all_source_that_becomes_machine_code() -> None:
    files = {file for file in PACKAGE.glob("*/kernels/*.py") if file.stem != "__init__"}
    assert len(files) > 5
    sources = {str(file.relative_to(PACKAGE)) for file in files} | {name for file in files for name in imported(file)}
    texts = [(PACKAGE / name).read_bytes() for name in sources - STAMPED_OTHERWISE]
    assert sum(map(len, texts)) == len(compiling._source())
    assert all(text in compiling._source() for text in texts)
