"""The page of the architecture: its order of reading stays short, and each invariant has its code and its test."""

import ast
import re
import tomllib

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAX_FILES, MAX_LINES = 12, 3000
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]

_READ = re.compile(r"^\d+\. `([^`]+)`: ", re.MULTILINE)
_ROW = re.compile(
    r"^\| [^|]+ \| (?:none|faults? [^|]+) \| `([^`]+)`, `([^`]+)` \| `([^`]+)`, `([^`]+)` \|$", re.MULTILINE
)


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def names_in(path: str) -> set[str]:
    """The functions of a module, and its methods as Class.method."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)}
    return names


INVARIANTS = _ROW.findall(section("Which invariants have caused bugs?"))


def test_the_order_of_reading_is_short() -> None:
    files = _READ.findall(section("In which order do I read the code?"))
    lines = sum(len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in files)
    assert 0 < len(files) <= MAX_FILES
    assert lines <= MAX_LINES


def test_every_invariant_names_its_code_and_its_test() -> None:
    rows = section("Which invariants have caused bugs?").count("\n| ") - 1
    assert len(INVARIANTS) == rows >= 15


@pytest.mark.parametrize(("file", "function", "test_file", "test"), INVARIANTS)
def test_the_code_and_the_test_of_an_invariant_exist(file: str, function: str, test_file: str, test: str) -> None:
    assert function in names_in(file)
    assert test in names_in(test_file)


@pytest.mark.parametrize("package", ["pipelines", "kafka_io"])
def test_the_picture_has_the_rooms_in_the_order_of_the_contract(package: str) -> None:
    [contract] = [contract for contract in CONTRACTS if contract.get("containers") == [package]]
    picture = PAGE.partition("```text\n")[2].partition("```")[0]
    [part] = [part for part in picture.split(" |\n") if part.startswith(package)]
    floors = [re.findall(r"[a-z_0-9]+(?=\.py|\b)", line.removeprefix(package)) for line in part.strip().splitlines()]
    shown = {name: floor for floor, names in enumerate(floors) for name in names}
    contracted = {name: floor for floor, line in enumerate(contract["layers"]) for name in line.split(" | ")}
    rooms = {name for name in contracted if (ROOT / package / name).is_dir()}
    assert {name: shown.get(name) for name in rooms} == {name: contracted[name] for name in rooms}
