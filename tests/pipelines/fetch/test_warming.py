"""`penstock warm` compiles all that loads with these settings call, and a load says when it compiles (fault F04)."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from click.testing import CliRunner

from kafka_io.jit.compiling import _KernelCache
from pipelines.cli.main import main
from pipelines.fetch.warming import DECODERS, HASHES, RECORDS, RECORDS_OF_07, compiled, needed
from resources.settings.settings import Settings
from tests.docs.pages import ROOT

FOLDERS = ("kafka_io.hashes.kernels", "kafka_io.records.kernels", "kafka_io.values.kernels")


def settings(topics: str = "", address: str = 'bootstrap = "b:1"') -> Settings:
    file = f'lake = "lake"\n[clusters.main]\n{address}\n[registries.main]\nurl = "http://r:1"\n{topics}'
    return Settings.of(tomllib.loads(file), folder=Path())


@pytest.mark.slow
def test_all_kernels_are_compiled() -> None:  # fault F04
    assert [decoder.decoder for decoder in compiled(list(DECODERS))] == list(DECODERS)
    cold = [
        f"{module.__name__}.{name}"
        for folder in FOLDERS
        for found in iter_modules(import_module(folder).__path__)
        for module in [import_module(f"{folder}.{found.name}")]
        for name, kernel in vars(module).items()
        if isinstance(getattr(kernel, "_cache", None), _KernelCache) and not kernel.signatures
    ]
    assert cold == []


@pytest.mark.parametrize(
    ("topics", "names"),
    [
        ("", [RECORDS]),
        ('[topics.a]\nformat = "text"\nkey_format = "json"', [RECORDS, "json"]),
        ('[topics.a]\nformat = "debezium"', [RECORDS, "avro", "json"]),
        ('[topics.a]\n[topics.a.load]\nkey = "hash:p"\n[secrets]\np = { id = "1", key = "env:P" }', [RECORDS, HASHES]),
        ('[topics.a]\nformat = "avro"\n[topics.b]\nformat = "protobuf"', [RECORDS, "avro", "protobuf"]),
    ],
)
def test_the_settings_say_which_decoders_are_needed(topics: str, names: list[str]) -> None:  # fault F04
    assert needed(settings(topics)) == names


def test_a_cluster_in_zookeeper_may_run_07() -> None:
    assert needed(settings(address='zookeeper = "z:1"')) == [RECORDS, RECORDS_OF_07]
    assert needed(settings(address='zookeeper = "z:1"\ngeneration = "0.8-0.9"')) == [RECORDS]


def test_the_command_needs_settings_only_without_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DECODERS:
        monkeypatch.setitem(DECODERS, name, lambda: None)
    nowhere = ["--settings", str(tmp_path / "penstock.toml"), "warm"]
    result = CliRunner().invoke(main, [*nowhere, "--all"])
    assert result.stdout.splitlines() == [f"ready {name}: 0.0 s" for name in DECODERS]
    assert CliRunner().invoke(main, nowhere).exit_code == 2


FIRST_CALL = """
import numpy as np
from kafka_io.jit.scalars import read_only
from kafka_io.records.kernels import legacy_messages
from pipelines.cli.output import log_lines
with log_lines.configured(log_lines.LogFormat.TEXT, command=None):
    legacy_messages.is_compressed(read_only(b"x" * 100), 0, 1, 1)
    legacy_messages.measure(read_only(b"x" * 100), 0)
"""


@pytest.mark.slow
def test_a_process_that_compiles_says_so_once(tmp_path: Path) -> None:  # fault F04
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    printed = [
        subprocess.run([sys.executable, "-c", FIRST_CALL], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [process.stderr for process in printed] == [
        "compiling the decoder for records, once for this machine ...\n",
        "",
    ]
