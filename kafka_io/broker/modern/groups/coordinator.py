"""All groups of the broker, which coordinates every one of them."""

import threading
import time
from collections.abc import Callable

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.groups.group import Group
from kafka_io.broker.modern.groups.offsets import Offsets
from kafka_io.errors import BrokerError


class Coordinator:
    """Groups by name, made when they are first joined."""

    def __init__(self, config: ModernBrokerConfig, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._now_s = now_s
        self._groups: dict[str, Group] = {}
        self._making = threading.Lock()
        self.offsets = Offsets(config.data_dir)

    def find(self, name: str) -> Group:
        """The group; one without members where there is none yet.

        Raises:
            BrokerError: an empty name, or too many groups (code 24).
        """
        with self._making:
            group = self._groups.get(name)
            if group is None:
                if not name or len(self._groups) >= self._config.max_groups:
                    raise BrokerError("the group's name is empty, or there are max_groups", code=Code.INVALID_GROUP_ID)
                group = self._groups[name] = Group(most_members=self._config.max_group_members, now_s=self._now_s)
            return group

    def known(self, name: str) -> Group | None:
        """The group, if it was ever joined."""
        return self._groups.get(name)

    def names(self) -> tuple[str, ...]:
        """All groups with members, or with offsets."""
        return tuple(sorted({*self._groups, *self.offsets.groups()}))

    def close(self) -> None:
        """End all waits of members."""
        for group in tuple(self._groups.values()):
            group.close()
