"""The sizes of the product: functions and files are short enough to read, and no small file serves only one other."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.syntax_trees import ROOT, product_trees, tree_of

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 500
MIN_FILE_LINES = 50


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The name of each function, and the number of lines of its body without the docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            yield node.name, body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def imported_modules(tree: ast.Module) -> set[str]:
    """The modules that a module imports anywhere, also those that it may name as attributes of a package."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def lines_of(path: Path) -> int:
    """The number of lines of a file."""
    return len((ROOT / path).read_text().splitlines())


def test_no_function_is_longer_than_60_lines() -> None:
    long = {f"{path}:{name}": lines for path, tree in product_trees().items() for name, lines in functions(tree)}
    assert len(long) > 2000
    assert {name: lines for name, lines in long.items() if lines > MAX_FUNCTION_LINES} == {}


def test_no_file_is_longer_than_500_lines() -> None:
    assert {str(path): lines_of(path) for path in product_trees() if lines_of(path) > MAX_FILE_LINES} == {}


def test_no_file_below_50_lines_has_a_single_importer() -> None:
    importers: defaultdict[str, int] = defaultdict(int)
    stub = tree_of(ROOT / "kafka_io" / "__init__.pyi")  # users import a public name from its module through kafka_io
    for tree in (*product_trees().values(), stub):
        for name in imported_modules(tree):
            importers[name] += 1
    modules = {path: ".".join(path.with_suffix("").parts) for path in product_trees() if path.name != "__init__.py"}
    assert max(importers[name] for name in modules.values()) > 10
    assert [
        str(path) for path, name in modules.items() if lines_of(path) < MIN_FILE_LINES and importers[name] == 1
    ] == []
