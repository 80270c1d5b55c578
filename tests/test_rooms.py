"""The laws of rooms: what a reader opens is small enough to understand at once.

A room is a folder of modules. It has a contract that says which rooms of the same folder it may import, and few files.
Functions are short and have few parameters, and classes have few fields. A file may have any length.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.syntax_trees import PACKAGES, ROOT, product_trees

MAX_FILES = 15
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 8
MAX_FIELDS = 15

FILE_PER_ROW: Mapping[str, str] = {
    "kafka_io/messages": "a file for each API of Kafka: nobody reads two of them together",
    "kafka_io/testing/modern/apis": "a file for each API that the embedded broker answers",
    "pipelines/cli": "a file for each command or group of commands",
}
"""Rooms that may have more files, with the reason."""
MANY_PARAMETERS: Mapping[str, str] = {}
"""Functions that may have more parameters, with the reason."""
MANY_FIELDS: Mapping[str, str] = {
    "IncrementOptions": "the keyword arguments of a decorator: most of them are those of Dagster's AssetSpec",
    "PrintedCommit": "`penstock history` prints it: its fields are the keys of the JSON",
}
"""Classes that may have more fields, with the reason."""
SETTINGS = {"Section", "BrokerConfig"}
"""The bases of settings: those of a file, and those of an embedded broker. They may have any number of fields."""


def is_kernel(path: Path) -> bool:
    """Whether numba compiles the module: its functions take buffers one by one."""
    return "kernels" in path.parts


def modules_by_room() -> dict[str, int]:
    """The number of modules in each room, without `__init__.py`."""
    return Counter(path.parent.as_posix() for path in product_trees() if path.name != "__init__.py" and path.parts[1:])


def rooms_of_contracts(project: str) -> set[str]:
    """The rooms whose imports a contract restricts, by the text of pyproject.toml."""
    return {
        f"{container}.{layer}".strip(".").replace(".", "/")
        for contract in tomllib.loads(project)["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
        for container in contract.get("containers", [""])
        for layers in contract["layers"]
        for layer in re.findall(r"\w+", layers)
    }


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """All functions and methods of a module."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """All classes of a module."""
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def body_lines(function: ast.FunctionDef) -> int:
    """The number of lines of a body without the docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def parameters(function: ast.FunctionDef) -> list[str]:
    """The parameters that a caller gives."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in {"self", "cls"}]


def takes_anything(function: ast.FunctionDef) -> bool:
    """Whether a misspelt argument is only noticed at run time: `**options: Any`."""
    rest = function.args.kwarg
    return rest is not None and rest.annotation is not None and ast.unparse(rest.annotation) == "Any"


def own_fields(class_: ast.ClassDef) -> set[str]:
    """The fields that a class declares, and the attributes that its methods set.

    In a class that is no dataclass, a declaration with a value belongs to the class, as a method does.
    """
    is_record = any("dataclass" in ast.unparse(decorator) for decorator in class_.decorator_list)
    is_record |= any(ast.unparse(base) == "NamedTuple" for base in class_.bases)
    declared = {
        statement.target.id
        for statement in class_.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        if is_record or statement.value is None
        if "ClassVar" not in ast.unparse(statement.annotation)
    }
    return declared | {
        node.attr
        for method in class_.body
        if isinstance(method, ast.FunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def lineage(class_: ast.ClassDef, known: Mapping[str, ast.ClassDef]) -> list[str]:
    """The names of a class and of all its bases. The bases that the product defines have bases themselves."""
    names = [class_.name]
    for base in class_.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        names += lineage(known[name], known) if name in known and name != class_.name else [name]
    return names


def fields(class_: ast.ClassDef, known: Mapping[str, ast.ClassDef]) -> set[str]:
    """The fields of a class, also those that it inherits."""
    return own_fields(class_).union(*(own_fields(known[name]) for name in lineage(class_, known)[1:] if name in known))


def test_a_room_has_at_most_15_files() -> None:
    counts = modules_by_room()
    assert len(counts) > 30
    assert {room: count for room, count in counts.items() if count > MAX_FILES and room not in FILE_PER_ROW} == {}, (
        "move files that belong together into a room of their own"
    )
    assert counts.keys() >= FILE_PER_ROW.keys()


def test_each_room_has_a_contract() -> None:
    """Contracts are in pyproject.toml, and `make check` follows them."""
    rooms = modules_by_room().keys() | set(PACKAGES)
    assert rooms - rooms_of_contracts((ROOT / "pyproject.toml").read_text()) == set()


def test_no_function_is_longer_than_60_lines() -> None:
    lines = {
        f"{path}:{function.name}": body_lines(function)
        for path, tree in product_trees().items()
        for function in functions(tree)
    }
    assert len(lines) > 2000
    assert {name: count for name, count in lines.items() if count > MAX_FUNCTION_LINES} == {}


def test_no_function_has_more_than_8_parameters() -> None:
    """Except kernels."""
    many = {
        f"{path}:{function.name}": len(parameters(function))
        for path, tree in product_trees().items()
        for function in functions(tree)
        if len(parameters(function)) > MAX_PARAMETERS and not is_kernel(path)
    }
    assert {name: count for name, count in many.items() if name not in MANY_PARAMETERS} == {}
    assert many.keys() >= MANY_PARAMETERS.keys()


def test_no_class_has_more_than_15_fields() -> None:
    """Except settings, and the buffers of kernels."""
    places = [
        (path, class_) for path, tree in product_trees().items() if not is_kernel(path) for class_ in classes(tree)
    ]
    known = {class_.name: class_ for _, class_ in places}
    many = {
        class_.name: (str(path), count)
        for path, class_ in places
        if not SETTINGS & set(lineage(class_, known)) and (count := len(fields(class_, known))) > MAX_FIELDS
    }
    assert len(known) > 500
    assert {name: found for name, found in many.items() if name not in MANY_FIELDS} == {}
    assert many.keys() >= MANY_FIELDS.keys()


def test_no_class_is_made_from_arguments_of_any_name() -> None:
    assert [
        f"{path}:{class_.name}.{method.name}"
        for path, tree in product_trees().items()
        for class_ in classes(tree)
        for method in class_.body
        if isinstance(method, ast.FunctionDef) and method.name in {"__init__", "of"} and takes_anything(method)
    ] == []
