"""The syntax trees of the product's modules, which the laws on names, rooms and source read. Each is parsed once."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("kafka_io", "pipelines", "resources")


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text())


def product_trees() -> Mapping[Path, ast.Module]:
    """The syntax trees of all modules of the product, by their path in the repository."""
    paths = [ROOT / "penstock.py", *(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))]
    return {path.relative_to(ROOT): tree_of(path) for path in paths}
