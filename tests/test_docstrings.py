"""Every public method says what it does: with a docstring of its own, or with that of the method it overrides."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.syntax_trees import ROOT, product_trees, tree_of

Classes = Mapping[str, Sequence[ast.ClassDef]]


def classes_by_name(trees: Mapping[Path, ast.Module]) -> Classes:
    """All classes of these modules, also those inside functions and classes."""
    classes: defaultdict[str, list[ast.ClassDef]] = defaultdict(list)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(node)
    return classes


def ancestors(class_: ast.ClassDef, classes: Classes) -> Iterator[ast.ClassDef]:
    """The classes from which a class inherits, as far as these modules define them."""
    for base in class_.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).rpartition(".")[2]
        for found in classes.get(name, ()):
            if found is not class_:
                yield found
                yield from ancestors(found, classes)


def methods(class_: ast.ClassDef) -> dict[str, bool]:
    """The public methods of a class, and whether each has a docstring."""
    documented: dict[str, bool] = {}
    for node in class_.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            documented[node.name] = documented.get(node.name, False) or ast.get_docstring(node) is not None
    return documented


def public_classes(body: Iterable[ast.stmt]) -> Iterator[ast.ClassDef]:
    """The classes that other modules may use: not those inside functions."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from public_classes(node.body)


def undocumented(trees: Mapping[Path, ast.Module]) -> Iterator[str]:
    """The public methods of public classes without a docstring, unless they override one that has a docstring."""
    classes = classes_by_name(trees)
    for class_ in (found for tree in trees.values() for found in public_classes(tree.body)):
        for method, is_documented in methods(class_).items():
            if not is_documented and not any(methods(base).get(method) for base in ancestors(class_, classes)):
                yield f"{class_.name}.{method}"


def test_every_public_method_has_a_docstring_or_overrides_one_that_has() -> None:
    tests = {path: tree_of(path) for path in sorted((ROOT / "tests").rglob("*.py"))}
    trees = {**product_trees(), **tests}
    assert len(classes_by_name(trees)) > 500
    assert list(undocumented(trees)) == []


def test_the_law_finds_a_method_without_docstring() -> None:
    source = '''
class Base:
    def load(self):
        """Load."""
    def close(self): ...

class Topic(Base):
    def load(self): ...
    def save(self): ...
    def _hidden(self): ...
'''
    assert list(undocumented({Path("a"): ast.parse(source)})) == ["Base.close", "Topic.save"]
