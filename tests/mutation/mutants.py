"""Makes mutants of a module: copies of its source that differ in one place, which a test should notice."""

import ast
import inspect
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_UNNOTICED = {"strict", "repr", "compare", "init"}
"""Arguments that change nothing as long as the rest of the code is correct, such as `strict` of `zip`."""
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A place of a module, and how it is changed there.

    Args:
        file: the module's path, relative to the root of the tree.
        lines: the first and the last line of the changed code.
        at_import: whether the code runs while the module is imported, and not when a function is called.
        change: what is changed, as code before and after it.
    """

    file: str
    lines: tuple[int, int]
    at_import: bool
    change: str

    def __str__(self) -> str:
        return f"{self.file}:{self.lines[0]}: {self.change}"

    def compiled(self, root: Path) -> CodeType:
        """The code of the mutated module. Its lines have the same numbers as those of the original."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMutant(Mutant):
    """A mutant with another node in the module's syntax tree.

    Args:
        function: the qualified name of the changed function or class; empty at the module's level. Together with `file`
            and `change` it names the mutant.
        place: the index of the changed node in the tree.
        number: the index of this change among those of the node.
    """

    function: str
    place: int
    number: int

    def __str__(self) -> str:
        return f"{self.file}:{self.lines[0]} {self.function}: {self.change}"

    def compiled(self, root: Path) -> CodeType:
        """See Mutant."""
        path = root / self.file
        tree = ast.parse(path.read_text())
        _replace(tree, self.place, self.number)
        return compile(tree, str(path), "exec")


def mutants_of(root: Path, file: str) -> Iterator[NodeMutant]:
    """The mutants of the module `root / file`, in order of line."""
    text = (root / file).read_text()
    called = set(_lines_of_functions(compile(text, file, "exec")))
    for place, (function, node) in enumerate(_places(ast.parse(text))):
        first = getattr(node, "lineno", 0)
        last = getattr(node, "end_lineno", first)
        for number, mutated in enumerate(_mutations(node)):
            yield NodeMutant(
                file=file,
                function=function,
                lines=(first, last),
                at_import=called.isdisjoint(range(first, last + 1)),
                change=f"{_short(node)} -> {_short(mutated)}",
                place=place,
                number=number,
            )


def _lines_of_functions(code: CodeType) -> Iterator[int]:
    """The lines of the bodies of functions. Their heads, with the defaults of arguments, run at import."""
    if code.co_flags & inspect.CO_OPTIMIZED:  # the code of modules and classes is not
        yield from {line for _, _, line in code.co_lines() if line is not None} - {code.co_firstlineno}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines_of_functions(constant)


def _places(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """All nodes below `tree` with the name of their function, always in the same order.

    Annotations, decorators and the arguments in `_UNNOTICED` are left out.
    """
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or (isinstance(node, ast.keyword) and node.arg in _UNNOTICED):
                continue
            name = function
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = f"{function}.{node.name}".lstrip(".")
            yield name, node
            yield from _places(node, name)


def _replace(tree: ast.AST, place: int, number: int) -> None:
    """Replace the node with the index `place` by its mutation with this number."""
    _, node = next(islice(_places(tree), place, None))
    mutated = ast.copy_location(next(islice(_mutations(node), number, None)), node)
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, mutated)
            elif isinstance(value, list) and any(item is node for item in value):
                setattr(parent, field, [mutated if item is node else item for item in value])
    ast.fix_missing_locations(tree)


def _mutations(node: ast.AST) -> Iterator[ast.AST]:
    """The changed copies of a node: a comparison, a condition or a call that does something else, or nothing."""
    match node:
        case ast.Compare(ops=[op, *others]) if type(op) in _COMPARISONS:
            yield _with(node, ops=[_COMPARISONS[type(op)](), *others])
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Call(func=ast.Name(id=name)) if name in _OPPOSITES:
            yield _with(node, func=ast.Name(id=_OPPOSITES[name], ctx=ast.Load()))
        case (
            ast.BinOp(op=ast.Add(), right=ast.Constant(value=int()))
            | ast.BinOp(op=ast.Sub(), right=ast.Constant(value=int()))
        ):
            yield node.left
        case ast.If(body=[ast.Raise()], orelse=[]):
            yield ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Constant(value=bool(value)):
            yield ast.Constant(value=not value)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    copy = deepcopy(node)
    for name, value in fields.items():
        setattr(copy, name, value)
    return copy


def _short(node: ast.AST) -> str:
    """The first line of the node's code."""
    return ast.unparse(node).splitlines()[0]
