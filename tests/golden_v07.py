"""Requests and answers that were captured between a genuine 0.7.2 broker and its own clients."""

import json
from pathlib import Path
from typing import Any

WIRE = Path(__file__).parent / "golden" / "v07" / "wire"


def captured(*files: str) -> list[Any]:
    """The captured records of these files, each with its id."""
    return [record for file in files for record in json.loads((WIRE / f"{file}.json").read_text())]
