"""Closes objects at the end of a `with` block."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self


class Closable(Protocol):
    """Anything with a method `close`."""

    def close(self) -> None:
        """Release all resources."""


@contextmanager
def closed_on_error(resource: Closable) -> Iterator[None]:
    """Close `resource` if the `with` block raises an error or is interrupted."""
    try:
        yield
    except BaseException:
        resource.close()
        raise


class Closing(ABC):
    """A context manager that calls `close` at its end."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; safe to call again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
