"""The optional packages: each extra of `penstock-etl`, and the check that it is installed when a command needs it."""

from importlib.util import find_spec

from resources.errors import ExtraMissing

_MODULES = {
    "dagster": ("dagster", "psutil"),
    "duckdb": ("duckdb",),
    "iceberg": ("pyiceberg", "sqlalchemy"),
    "kerberos": ("gssapi",),
    "postgres": ("psycopg",),
    "spark": ("pyspark", "py4j", "pandas"),
}
"""The modules of each extra that our code imports; `pyproject.toml` has their packages."""

_NEEDS = {"kerberos": "; pip compiles it, so install libkrb5-dev and gcc first"}
"""The end of the hint for extras that need other programs first."""


def check_extra(extra: str, purpose: str) -> None:
    """Check that the packages of an extra are installed. `purpose` is the part of the sentence that says who needs it.

    Raises:
        ExtraMissing: one of them is not.
    """
    missing = _missing(extra)
    if missing:
        raise ExtraMissing(f"{purpose} needs the package {missing[0]}: {install_hint(extra)}")


def has_extra(extra: str) -> bool:
    """Whether the packages of an extra are installed."""
    return not _missing(extra)


def _missing(extra: str) -> list[str]:
    return [module for module in _MODULES[extra] if find_spec(module) is None]


def extra_of(module: str | None) -> str | None:
    """The extra that installs a module; None if no extra does."""
    top = (module or "").partition(".")[0]
    return next((extra for extra, modules in _MODULES.items() if top in modules), None)


def install_hint(extra: str) -> str:
    """The words that tell how to install an extra."""
    return f"install it with `pip install 'penstock-etl[{extra}]'`{_NEEDS.get(extra, '')}"
