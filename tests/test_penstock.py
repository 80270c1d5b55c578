"""The public module `penstock` and the wheel: they work in other projects, and say what is in their way."""

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import penstock
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.publishing import publish

ROOT = Path(__file__).parents[1]


pytestmark = pytest.mark.slow  # builds a wheel, and starts processes that import Dagster


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel, as pip installs it."""
    home = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(home)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = home.glob("*.whl")
    with ZipFile(file) as content:
        content.extractall(home / "site")
    return home / "site"


def run_python(code: str, *folders: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with these folders before all others."""
    path = os.pathsep.join(map(str, folders))
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def test_the_module_has_exactly_the_public_names() -> None:
    assert dir(penstock) == [
        "DeltaOutput",
        "DuckDBOutput",
        "Increment",
        "PenstockComponent",
        "PenstockTranslator",
        "PostgresOutput",
        "TopicProps",
        "apply_increment",
        "build_defs",
        "complete_through",
        "increment_asset",
        "increments",
        "on_complete_partitions",
    ]
    rooms = ("pipelines.defs", "pipelines.increments", "pipelines.status")
    assert all(getattr(penstock, name).__module__.startswith(rooms) for name in dir(penstock))
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = penstock.other


def test_the_wheel_works_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    code = """
import sys, penstock
assert not {"dagster", "pyspark", "pipelines"} & set(sys.modules)
from penstock import build_defs
import kafka_io, resources, pipelines
defs = build_defs({"lake": "/lake", "clusters": {"main": {"bootstrap": "b:9092"}}})
print(*(module.__file__ for module in (penstock, kafka_io, resources, pipelines)), sep="\\n")
"""
    done = run_python(code, wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(Path(file).is_relative_to(wheel) for file in done.stdout.split())
    assert len(done.stdout.split()) == 4


def test_the_wheel_brings_the_explanations_of_errors(wheel: Path, tmp_path: Path) -> None:
    done = run_python("from pipelines.cli.main import main; main(['explain', '301'])", wheel, cwd=tmp_path)
    assert done.stdout.startswith("PS-301: Retention removed records before they were loaded\n"), done.stderr


def test_the_core_works_without_any_extra(wheel: Path, tmp_path: Path) -> None:
    """The process finds only the packages that the wheel requires, and those that they require."""
    program = str(ROOT / "tests" / "core_program.py")
    settings = tmp_path / "penstock.toml"
    with ModernBrokerServer(ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "broker")) as broker:
        settings.write_text(f'lake = "lake"\n[clusters.main]\nbootstrap = "127.0.0.1:{broker.port}"\n')
        publish("clicks", [b"one", b"two", b"three"], bootstrap=f"127.0.0.1:{broker.port}")
        done = subprocess.run(
            [sys.executable, program, str(wheel), str(settings)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["load clicks"]["results"][0]["rows"] == 3
    assert results["verify clicks"]["results"][0]["proven"]
    assert [results[words]["exit_code"] for words in ("config check", "status", "history clicks")] == [0, 0, 0]
    assert results["load clicks, in small slices"]["results"][0]["rows"] == 3
    assert results["imports"] == {
        "build_defs": "build_defs needs the package dagster: install it with `pip install 'penstock-etl[dagster]'`",
        "definitions": "a code location of Dagster needs the package dagster: "  # fault F01
        "install it with `pip install 'penstock-etl[dagster]'`",
        "connect_duckdb": "a state table, an audit or a DuckDBOutput needs the package duckdb: "
        "install it with `pip install 'penstock-etl[duckdb]'`",
        "open_cluster": "the login at the cluster main (GSSAPI) needs the package gssapi: install it with "
        "`pip install 'penstock-etl[kerberos]'`; pip compiles it, so install libkrb5-dev and gcc first",
    }


def test_the_wheel_has_all_files_and_nothing_else(wheel: Path) -> None:
    # Other tests import from the unpacked wheel, so folders of compiled modules may have appeared in it.
    files = {
        path.relative_to(wheel)
        for path in wheel.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__" and ".dist-info" not in str(path)
    }
    names = {path.parts[0] for path in files}
    assert names == {"penstock.py", "kafka_io", "resources", "pipelines"}
    tracked = subprocess.run(
        ["git", "ls-files", *names], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert files == set(map(Path, tracked))


def test_dg_finds_the_component(wheel: Path) -> None:
    (file,) = wheel.glob("*.dist-info/entry_points.txt")
    entry_points = configparser.ConfigParser()
    entry_points.read(file)
    assert dict(entry_points["dagster_dg_cli.registry_modules"]) == {"penstock": "penstock"}
    assert set(entry_points.sections()) == {"console_scripts", "dagster_dg_cli.registry_modules"}


def import_beside(
    file: str, wheel: Path, folder: Path, *, use: str = "from penstock import build_defs"
) -> subprocess.CompletedProcess[str]:
    """Use Penstock in a project that has this file."""
    path = folder / "project" / file
    path.parent.mkdir(parents=True)
    path.write_text("")
    return run_python(use, folder / "project", wheel, cwd=folder)


@pytest.mark.parametrize("file", ["resources/__init__.py", "pipelines.py"])
def test_a_package_that_hides_ours_is_named(wheel: Path, tmp_path: Path, file: str) -> None:
    sentence = import_beside(file, wheel, tmp_path).stderr.strip().splitlines()[-1]
    assert sentence.startswith("ImportError: Penstock needs its package")
    assert str(tmp_path / "project" / file) in sentence
    assert "rename" in sentence


def test_a_folder_that_is_no_package_hides_nothing(wheel: Path, tmp_path: Path) -> None:
    done = import_beside("resources/own.py", wheel, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("file", "use"),
    [
        ("resources.py", "import runpy; runpy.run_module('pipelines.definitions', run_name='__main__')"),
        ("kafka_io/__init__.py", "import pipelines.definitions"),
        ("pipelines/__init__.py", "import penstock; penstock.defs"),
    ],
)
def test_the_definitions_for_dagster_name_a_package_that_hides_ours(
    wheel: Path, tmp_path: Path, file: str, use: str
) -> None:  # fault F07
    sentence = import_beside(file, wheel, tmp_path, use=use).stderr.strip().splitlines()[-1]
    assert sentence.startswith("ImportError: Penstock needs its package")
    assert str(tmp_path / "project" / file) in sentence
