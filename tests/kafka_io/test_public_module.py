"""The public module of kafka_io: it has the names of docs/library.md, and using one loads only what that name needs."""

import ast
import doctest
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import kafka_io

ROOT = Path(__file__).parents[2]
HEAVY = ("kazoo", "llvmlite", "numba", "numpy", "pyarrow")
# A fork for each module with public names: it is as fresh as a new process, and starts faster. The heavy packages are
# loaded before the forks and then hidden. A module that imports one of them finds it again, and no time passes.
PROBE = f"""
import importlib.machinery, json, os, sys
import kafka_io

class Hidden:
    packages = {{}}

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name in self.packages else None

    def create_module(self, spec):
        return self.packages[spec.name]

    def exec_module(self, module):
        pass

for name in {HEAVY!r}:
    __import__(name)
for name in {HEAVY!r}:
    Hidden.packages[name] = sys.modules.pop(name)
sys.meta_path.insert(0, Hidden())

needs = {{}}
for module, names in kafka_io._NAMES.items():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        getattr(kafka_io, names.split()[0])
        ours = [name for name in sys.modules if name.split(".")[0] == "kafka_io"]
        heavy = [name for name in {HEAVY!r} if name in sys.modules]
        with os.fdopen(write, "w") as out:
            json.dump([ours, heavy], out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as into:
        needs[module] = json.load(into)
    os.waitpid(child, 0)
print(json.dumps(needs))
"""
# numba is imported with the first kernel, and kazoo with the first session with ZooKeeper.
ARROW = ["numpy", "pyarrow"]
RECORDS = ["llvmlite", "numba", *ARROW]
CLIENTS = ["kazoo", *RECORDS]


@pytest.fixture(scope="module")
def loaded() -> dict[str, tuple[set[str], list[str]]]:
    """The modules of kafka_io, and the heavy packages, that are loaded by using each public name or its neighbours."""
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, cwd=ROOT)
    needs = json.loads(done.stdout)
    return {name: (set(needs[module][0]), needs[module][1]) for name, module in kafka_io._MODULES.items()}


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of kafka_io that a module imports at its top level, with their packages."""
    path = ROOT.joinpath(*module.split("."))
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    modules: set[str] = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "kafka_io":
            package = statement.module or ""
            parts = [f"{package}.{alias.name}" for alias in statement.names]
            modules |= {package, *(part for part in parts if is_module(part))}
    return frozenset(modules)


def is_module(name: str) -> bool:
    """Whether the tree has a module of this name."""
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def needs_of(module: str) -> set[str]:
    """The modules of kafka_io that importing `module` loads, itself and all packages included."""
    needed: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += imports_of(name)
            if "." in name:
                waiting.append(name.rpartition(".")[0])
    return needed


@pytest.mark.parametrize("name", kafka_io.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(kafka_io, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = kafka_io.nonsense  # type: ignore[attr-defined] # type checkers know that, too


def test_the_example_is_true() -> None:
    assert doctest.testmod(kafka_io).failed == 0


def test_the_public_names_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "library.md").read_text()
    shown = {
        name
        for imported in re.findall(r"^from kafka_io import (.+)$", page, re.MULTILINE)
        for name in imported.split(", ")
    }
    listed = {name for row in re.findall(r"^\|.*\|$", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    public = set(kafka_io.__all__)
    assert public <= shown | listed
    assert shown <= public


def test_type_checkers_see_the_same_names() -> None:
    stub = ast.parse((ROOT / "kafka_io" / "__init__.pyi").read_text())
    seen = sorted(
        (alias.name, alias.asname, part.module)
        for part in stub.body
        if isinstance(part, ast.ImportFrom)
        for alias in part.names
    )
    assert seen == [(name, name, f"kafka_io.{module}") for name, module in sorted(kafka_io._MODULES.items())]


@pytest.mark.slow
@pytest.mark.parametrize("name", kafka_io.__all__)
def test_a_name_loads_its_module_and_what_that_imports(
    name: str, loaded: dict[str, tuple[set[str], list[str]]]
) -> None:
    modules, heavy = loaded[name]
    assert modules == needs_of(f"kafka_io.{kafka_io._MODULES[name]}")
    assert set(heavy) <= set(CLIENTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("TextEncoder", []),
        ("TopicPartition", []),
        ("Where", []),
        ("Record", ["numpy"]),
        ("decode", RECORDS),
        ("decode_v07", RECORDS),
        ("Source", ARROW),
        ("SimpleConsumer", RECORDS),
        ("Cluster", ARROW),
        ("open_cluster", ARROW),
        ("open_producer", ["kazoo", *ARROW]),
    ],
)
def test_a_name_loads_no_package_that_it_does_not_need(
    name: str, heavy: list[str], loaded: dict[str, tuple[set[str], list[str]]]
) -> None:
    assert loaded[name][1] == heavy


@pytest.mark.slow
def test_an_encoder_loads_three_modules(loaded: dict[str, tuple[set[str], list[str]]]) -> None:  # fault G16
    assert loaded["TextEncoder"][0] == {"kafka_io", "kafka_io.producer", "kafka_io.producer.encoder"}


def test_the_wire_needs_nothing_but_the_standard_library() -> None:
    heavy = "{'numba', 'numpy', 'pyarrow', 'kazoo', 'pyspark', 'dagster'}"
    code = f"import sys, kafka_io.v07.messages, kafka_io.errors; sys.exit(str({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()"
