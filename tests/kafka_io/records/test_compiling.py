"""Kernels travel in a zip, and are compiled once for all who have the same text."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from kafka_io.records import columns
from kafka_io.records.kernels import sets as kernels
from kafka_io.records.build import message
assert kernels.__file__.startswith(sys.argv[1])
columns.warm()
(decoded,) = columns.decode_v07(message(b"x"), base=0)
assert decoded.batch.num_rows == 1
stats = kernels.decode.stats
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
    """What `program` prints with `code` on its path and only `environment` to say where caches are."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "PYTHON", "XDG"))}
    done = subprocess.run(
        [sys.executable, "-c", program, str(code)],
        cwd=code.parent,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_zips_of_the_same_kernels_share_one_compilation(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(shipped(tmp_path / "first"), NUMBA_CACHE_DIR=cache) == COMPILED
    assert run(shipped(tmp_path / "second"), NUMBA_CACHE_DIR=cache) == LOADED


def test_without_a_setting_the_users_own_cache_serves(tmp_path: Path) -> None:
    code = shipped(tmp_path / "code")
    assert run(code, HOME=str(tmp_path)) == COMPILED
    assert run(code, HOME=str(tmp_path)) == LOADED


def test_where_no_cache_can_be_written_the_kernels_run_all_the_same(tmp_path: Path) -> None:
    assert run(shipped(tmp_path / "code"), NUMBA_CACHE_DIR="/dev/null/cache") == COMPILED


LATER = """
import sys
sys.path.insert(0, sys.argv[1])
from kafka_io.records import logs
from kafka_io.records.kernels import batches, messages
logs.warm()
stats = [kernel.stats for kernel in (batches.list_batches, batches.decode, messages.measure, messages.decode)]
print("compiled", *(sum(each.cache_misses.values()) for each in stats))
"""


def test_the_kernels_of_later_formats_travel_too(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert run(shipped(tmp_path / "first"), LATER, NUMBA_CACHE_DIR=cache) == "compiled 1 1 1 1"
    assert run(shipped(tmp_path / "second"), LATER, NUMBA_CACHE_DIR=cache) == "compiled 0 0 0 0"
