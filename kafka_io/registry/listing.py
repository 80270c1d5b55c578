"""How the registry is listed: what there is, and which nodes had to be left out.

A node that cannot be read is left out by name and reason; a registry that cannot be read is never an empty one (Z06).
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.registry.endpoints import EndpointMissing
from kafka_io.registry.session import Asking

T = TypeVar("T")

Skip = Callable[[str, RegistryError], None]
"""Told the path of a node that is left out, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A node that was listed and could not be used."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """What the registry holds, in order, and which of its nodes were left out."""

    found: tuple[T, ...]
    skipped: tuple[Skipped, ...] = ()


class Vanished(RegistryError):
    """A node went between being listed and being read."""


def collect(read: Callable[[Skip], Iterable[T]]) -> Listing[T]:
    """All that `read` finds, and all it skips."""
    skipped: list[Skipped] = []
    found = tuple(read(lambda path, error: skipped.append(Skipped(path=path, reason=str(error)))))
    return Listing(found=found, skipped=tuple(skipped))


def names_under(asking: Asking, path: str) -> tuple[str, ...]:
    """The names of the children of a node that every registry has.

    Raises:
        RegistryError: it is not there, so this is no registry.
    """
    node = asking.node(path)
    if node is None:
        raise _not_a_registry(asking, path)
    return node.children


def present(answer: T | None) -> T:
    """What was answered about a node that was there a moment ago (Z03).

    Raises:
        Vanished: it is not any more.
    """
    if answer is None:
        raise Vanished("the node vanished between being listed and being read")
    return answer


@contextmanager
def skipping(path: str, skip: Skip) -> Iterator[None]:
    """What is wrong with the node at `path` alone leaves it out."""
    try:
        yield
    except (NodeMalformed, Vanished, EndpointMissing) as error:
        skip(path, error)


def let_by(_path: str, _error: RegistryError) -> None:
    """A `Skip` for who looks for something else; the listing of these nodes tells of them."""


def _not_a_registry(asking: Asking, path: str) -> RegistryError:
    if not asking.exists("/"):
        return RegistryError("the chroot of the ZooKeeper connect string does not exist")
    return RegistryError(f"this is not a Kafka registry, or not yet: ZooKeeper has no {path!r} under the chroot")
