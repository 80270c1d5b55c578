"""Puts a mutant into the modules that this process has loaded."""

import gc
import importlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from tests.mutation.mutants import Mutant

_Functions = Mapping[tuple[str, int], FunctionType]
"""The functions of a module by qualified name and first line."""
_PLAIN = (bool, int, float, str, bytes)


class NoDifference(Exception):
    """The mutant's functions and values equal those that are loaded."""


class LoadedModules:
    """The loaded modules of some files.

    Other modules, tests and objects already refer to functions of these modules. So a mutant does not replace the
    functions: it gives them other code. What runs while a module is imported has run. Of that, a mutant changes the
    defaults of arguments and fields, values of classes, and values at the module's level.
    """

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self._root = root
        self._modules = {file: importlib.import_module(file.removesuffix(".py").replace("/", ".")) for file in files}
        gc.unfreeze()  # the collection of tests has frozen what it imported
        gc.collect()
        self._functions = {file: _functions(module) for file, module in self._modules.items()}
        # From now on gc.get_objects() lists new objects alone, and no collection touches the memory that forks share.
        gc.freeze()

    def mutate(self, mutant: Mutant) -> None:
        """Change the mutant's module.

        Raises:
            NoDifference: nothing changed.
            Exception: the mutated module cannot be imported.
        """
        module, loaded = self._modules[mutant.file], self._functions[mutant.file]
        mutated = ModuleType(module.__name__)
        gc.disable()
        exec(mutant.compiled(self._root), vars(mutated))
        functions = _functions(mutated)
        gc.enable()
        if not (
            _set_code(loaded, functions)
            or _set_defaults(loaded, functions)
            or _set_values(module, mutated)
            or _set_class_values(module, mutated)
        ):
            raise NoDifference(str(mutant))


def _functions(module: ModuleType) -> _Functions:
    """All functions that were made while the module was imported, also methods and the functions inside decorators."""
    return {
        (function.__qualname__, function.__code__.co_firstlineno): function
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and function.__module__ == module.__name__
        and not function.__qualname__.startswith("__create_fn__.")  # `dataclass` makes several of the same name
    }


def _set_code(loaded: _Functions, mutated: _Functions) -> bool:
    different = [key for key in loaded.keys() & mutated.keys() if loaded[key].__code__ != mutated[key].__code__]
    for key in different:
        code = mutated[key].__code__
        if not code.co_freevars:  # the mutant may have lost the only use of `super()`
            code = code.replace(co_freevars=loaded[key].__code__.co_freevars)
        loaded[key].__code__ = code
    return bool(different)


def _set_defaults(loaded: _Functions, mutated: _Functions) -> bool:
    """Set the defaults of arguments. Those of fields are defaults of the arguments of `__init__`."""
    is_different = False
    for key in loaded.keys() & mutated.keys():
        function, other = loaded[key], mutated[key]
        positional = tuple(map(_plain, function.__defaults__ or (), other.__defaults__ or ())) or None
        by_name = {
            name: _plain(value, (other.__kwdefaults__ or {})[name])
            for name, value in (function.__kwdefaults__ or {}).items()
        }
        is_different |= (positional, by_name) != (function.__defaults__, function.__kwdefaults__ or {})
        function.__defaults__, function.__kwdefaults__ = positional, by_name
    return is_different


def _plain(value: Any, other: Any) -> Any:
    """The other value if it is plain. Any other can be an object of a class that the mutated module defines again."""
    return other if isinstance(other, _PLAIN) else value


def _set_values(module: ModuleType, mutated: ModuleType) -> bool:
    """Set the values of names at the module's level, wherever they were imported; not classes and functions."""
    is_different = False
    for name, value in vars(mutated).items():
        loaded = vars(module)[name]
        is_own = type(value).__module__ == module.__name__
        is_same = loaded is value or (isinstance(value, _PLAIN) and value == loaded)
        if name.startswith("__") or callable(value) or isinstance(value, TypeVar) or is_own or is_same:
            continue
        is_different = True
        for other in list(sys.modules.values()):
            names = getattr(other, "__dict__", {})
            if name in names and names[name] is loaded:
                names[name] = value
    return is_different


def _set_class_values(module: ModuleType, mutated: ModuleType) -> bool:
    """Set the plain values of classes. Those of enumerations are members, and not plain."""
    is_different = False
    for class_ in vars(mutated).values():
        if not isinstance(class_, type) or class_.__module__ != module.__name__:
            continue
        loaded = vars(module)[class_.__name__]
        for name, value in vars(class_).items():
            if type(value) in _PLAIN and not name.startswith("__") and vars(loaded)[name] != value:
                is_different = True
                setattr(loaded, name, value)
    return is_different
