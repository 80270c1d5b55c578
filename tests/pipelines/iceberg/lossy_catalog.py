"""A catalog that loses requests and answers."""

from collections.abc import Callable, Sequence
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServiceUnavailableError

LOST = (
    CommitStateUnknownException("502"),
    ServiceUnavailableError("503"),
    ConnectionResetError("closed"),
    CommitFailedException("409: a proxy repeated the request"),
)
"""What pyiceberg raises if the answer to a commit is lost, or if that to a repeated request comes in its place."""


class LossyCatalog:
    """A catalog that commits, and then raises one of the errors of LOST; or that raises it without a commit."""

    def __init__(self, catalog: Catalog, fails: Callable[[], str], errors: Sequence[Exception] = LOST) -> None:
        self._catalog, self._fails, self._errors, self.lost = catalog, fails, errors, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def load_table(self, identifier: Any) -> Any:
        """The table, whose commits go through this catalog."""
        table = self._catalog.load_table(identifier)
        table.catalog = self  # type: ignore[assignment]
        return table

    def commit_table(self, table: Any, requirements: Any, updates: Any) -> Any:
        """Commit, unless the answer or the request is lost."""
        how = self._fails()
        if how != "before":
            answer = self._catalog.commit_table(table, requirements, updates)
        if how:
            self.lost += 1
            raise self._errors[self.lost % len(self._errors)]
        return answer
