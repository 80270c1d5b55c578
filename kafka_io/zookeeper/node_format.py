"""The format of the nodes: it is determined from each node and never guessed."""

from enum import StrEnum

from kafka_io.errors import RegistryError


class NodeFormat(StrEnum):
    """The two formats of nodes. Later generations share one format; only a broker can say which one it is."""

    V07 = "0.7"
    JSON = "0.8 or later"


class FormatEvidence:
    """The nodes that show a format, at most one per format. A cluster must have only one format."""

    def __init__(self) -> None:
        self._paths: dict[NodeFormat, str] = {}

    def add(self, node_format: NodeFormat, path: str) -> None:
        """Add a node whose content is only possible in this format.

        Raises:
            RegistryError: another node had the other format.
        """
        self._paths.setdefault(node_format, path)
        if len(self._paths) > 1:
            nodes = " and ".join(f"{path!r} is of Kafka {seen_format}" for seen_format, path in self._paths.items())
            raise RegistryError(
                f"two generations of Kafka share this part of ZooKeeper; give each its own chroot: {nodes}"
            )

    @property
    def node_format(self) -> NodeFormat | None:
        """The format that the nodes show; None if no node shows one."""
        return next(iter(self._paths), None)
