"""A base class for objects that a `with` block closes."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


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
