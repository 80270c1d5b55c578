"""The names of the product: each is unique, known in the field, and says what it stands for."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.syntax_trees import product_trees

UNKNOWN_WORDS = set(
    re.findall(
        r"\w+",
        """
        mending asked beside looking glimpse hasty lives standing parting partings strayed declaring declared dialling
        dialled keeper participation bearings intake handover parcel enrolment arrivals filling lane lanes claim claims
        """,
    )
)
"""Words that mean nothing to someone who knows Kafka, Delta and Dagster, as a review found."""

EMPTY_NAMES = {
    "one",
    "found",
    "told",
    "mine",
    "rest",
    "held",
    "got",
    "it",
    "its",
    "them",
    "thing",
    "things",
    "gone",
    "said",
}
"""Names that do not say what a variable holds."""


def public_types(tree: ast.Module) -> Iterator[str]:
    """The public classes and type aliases that a module defines."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Subscript | ast.BinOp):
            names = (target.id for target in statement.targets if isinstance(target, ast.Name))
            yield from (name for name in names if name[0].isupper() and not name.isupper())


def words_of(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase, in lower case."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name.replace("ZooKeeper", "Zookeeper"))
    return {word.lower() for word in words}


def test_no_public_class_or_alias_is_defined_twice() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in product_trees().items():
        for name in public_types(tree):
            if not name.startswith("_"):
                places[name].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_name_of_a_room_file_or_class_uses_an_unknown_word() -> None:
    trees = product_trees()
    names = {part for path in trees for part in path.with_suffix("").parts}
    names |= {name for tree in trees.values() for name in public_types(tree)}
    assert {name for name in names if words_of(name) & UNKNOWN_WORDS} == set()


def variables(tree: ast.Module) -> Iterator[str]:
    """The variables, parameters, attributes and functions that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef):
            yield node.name


def test_variables_say_what_they_hold() -> None:
    unclear = {
        f"{path}: {name}"
        for path, tree in product_trees().items()
        for name in variables(tree)
        if name.strip("_") in EMPTY_NAMES
    }
    assert unclear == set()
