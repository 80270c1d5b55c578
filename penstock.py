"""Penstock for other projects: Dagster (a component, `build_defs`, a translator), increments and complete times.

This is the one public module. It is imported by `dg` and by every code location, so it imports nothing before one of
its names is used.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.defs.build import build_defs as build_defs
    from pipelines.defs.catalog.translator import PenstockTranslator as PenstockTranslator
    from pipelines.defs.catalog.translator import TopicProps as TopicProps
    from pipelines.defs.component import PenstockComponent as PenstockComponent
    from pipelines.defs.increment_asset import increment_asset as increment_asset
    from pipelines.defs.sensors.complete_hours import on_complete_partitions as on_complete_partitions
    from pipelines.increments.delta_output import DeltaOutput as DeltaOutput
    from pipelines.increments.duckdb_output import DuckDBOutput as DuckDBOutput
    from pipelines.increments.increment import Increment as Increment
    from pipelines.increments.increment import apply_increment as apply_increment
    from pipelines.increments.increment import increments as increments
    from pipelines.increments.postgres_output import PostgresOutput as PostgresOutput
    from pipelines.status.completeness import complete_through as complete_through

_HOME = Path(__file__).resolve().parent
_MODULES = {
    "DeltaOutput": "pipelines.increments.delta_output",
    "DuckDBOutput": "pipelines.increments.duckdb_output",
    "Increment": "pipelines.increments.increment",
    "PenstockComponent": "pipelines.defs.component",
    "PenstockTranslator": "pipelines.defs.catalog.translator",
    "PostgresOutput": "pipelines.increments.postgres_output",
    "TopicProps": "pipelines.defs.catalog.translator",
    "apply_increment": "pipelines.increments.increment",
    "build_defs": "pipelines.defs.build",
    "complete_through": "pipelines.status.completeness",
    "increment_asset": "pipelines.defs.increment_asset",
    "increments": "pipelines.increments.increment",
    "on_complete_partitions": "pipelines.defs.sensors.complete_hours",
}
_LOCATION = {"defs": "pipelines.definitions"}
"""The definitions of `dagster dev -m penstock -a defs`. They read the settings, so they are private (fault F07)."""
__all__ = sorted(_MODULES)  # noqa: PLE0605 - type checkers take the names from the imports above
_IMPORTING = {"PostgresOutput": "psycopg"}
"""The names whose modules import a package of an extra other than `dagster`."""
_PACKAGES = ("kafka_io", "resources", "pipelines")


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is used first."""
    module = (_MODULES | _LOCATION).get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_packages()
    from kafka_io.garbage import no_collections  # noqa: PLC0415 - this module imports nothing at first

    try:
        with no_collections():
            value = globals()[name] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        _explain(name, error)
        raise
    return value


def _explain(name: str, error: ModuleNotFoundError) -> None:
    """Name the extra that brings a missing module.

    Raises:
        ImportError: the module belongs to an extra.
    """
    from resources.extras import extra_of, install_hint  # noqa: PLC0415 - this module imports nothing at first

    extra = extra_of(error.name)
    if extra:
        raise ImportError(f"{name} needs the package {error.name}: {install_hint(extra)}") from error


def __dir__() -> list[str]:
    # Dagster reads each of these names when it looks for components, so a missing extra must not hide all (fault F01).
    return [name for name in __all__ if name not in _IMPORTING or find_spec(_IMPORTING[name])]


def check_packages() -> None:
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
