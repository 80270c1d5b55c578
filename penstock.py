"""Penstock for other Dagster projects: a component, `build_defs`, and a translator to subclass.

This is the one public module. It is imported by `dg` and by every code location, so it imports nothing before one of
its names is used.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.defs.build import build_defs
    from pipelines.defs.component import PenstockComponent
    from pipelines.defs.translator import PenstockTranslator, TopicProps

__all__ = ["PenstockComponent", "PenstockTranslator", "TopicProps", "build_defs"]

_HOME = Path(__file__).resolve().parent
_MODULES = {
    "PenstockComponent": "pipelines.defs.component",
    "PenstockTranslator": "pipelines.defs.translator",
    "TopicProps": "pipelines.defs.translator",
    "build_defs": "pipelines.defs.build",
}
_PACKAGES = ("kafka_io", "resources", "pipelines")


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is used first."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _check_packages()
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _check_packages() -> None:
    """Check that the packages of Penstock are not hidden by others of the same name.

    Raises:
        ImportError: another package or module is found first.
    """
    for package in _PACKAGES:
        spec = find_spec(package)
        folders = [Path(folder).resolve() for folder in (spec.submodule_search_locations or ())] if spec else []
        if _HOME / package not in folders[:1]:
            other_place = (spec.origin if spec else None) or ", ".join(map(str, folders)) or "nothing"
            raise ImportError(
                f"Penstock needs its package {package!r} in {_HOME}, but Python finds {other_place} first; rename that "
                "package or module, or move it into a package of your project"
            )
