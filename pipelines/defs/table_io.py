"""The IO manager of the tables: an asset that takes a table as an input gets it from the lake.

Loads write the tables themselves, so Dagster never asks this IO manager to store something.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from deltalake import DeltaTable


class TableInputs(dg.IOManager):
    """Opens the Delta table of an upstream asset. The rows are read when the asset asks for them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    def load_input(self, context: dg.InputContext) -> DeltaTable:
        """The Delta table of the upstream asset."""
        metadata = context.upstream_output.definition_metadata if context.upstream_output else {}
        return DeltaTable(str(metadata["dagster/uri"]), storage_options=self._options)

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Loads store nothing here."""
