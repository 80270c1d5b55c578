"""Which of the two dialects a registry's nodes speak: found out node by node, never guessed."""

from enum import StrEnum

from kafka_io.errors import RegistryError


class Dialect(StrEnum):
    """How a registry is written. ZooKeeper tells no more: later generations are told apart by asking a broker."""

    V07 = "0.7"
    JSON = "0.8 or later"


class Evidence:
    """The nodes that showed a dialect, one for each; there may be but one in a registry."""

    def __init__(self) -> None:
        self._paths: dict[Dialect, str] = {}

    def add(self, dialect: Dialect, path: str) -> None:
        """The node at `path` can only be of this dialect.

        Raises:
            RegistryError: another node was of the other one.
        """
        self._paths.setdefault(dialect, path)
        if len(self._paths) > 1:
            nodes = " and ".join(f"{path!r} is of Kafka {dialect}" for dialect, path in self._paths.items())
            raise RegistryError(f"two generations share this registry, give each its own chroot: {nodes}")

    @property
    def dialect(self) -> Dialect | None:
        """The one dialect seen; None while no node has shown any."""
        return next(iter(self._paths), None)
