"""The group coordinator: this broker coordinates all groups."""

import threading

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.groups.group import BrokerGroup
from kafka_io.testing.modern.groups.offsets import GroupOffsetStore


class GroupCoordinator:
    """Groups by name. A group is created when a member joins it first."""

    def __init__(self, config: ModernBrokerConfig) -> None:
        self._config = config
        self._groups: dict[str, BrokerGroup] = {}
        self._creating = threading.Lock()
        self.offsets = GroupOffsetStore(config.data_dir)

    def find_or_create(self, name: str) -> BrokerGroup:
        """The group; a new one without members if there is none yet.

        Raises:
            BrokerError: the name is empty, or there are too many groups (code 24).
        """
        with self._creating:
            group = self._groups.get(name)
            if group is None:
                if not name or len(self._groups) >= self._config.max_groups:
                    reason = "the name of the group is empty, or the broker has max_groups groups already"
                    raise BrokerError(reason, code=ErrorCode.INVALID_GROUP_ID)
                group = self._groups[name] = self._new_group()
            return group

    def find(self, name: str) -> BrokerGroup:
        """The group. One that no member ever joined is empty, and is not kept."""
        return self._groups.get(name) or self._new_group()

    def names(self) -> tuple[str, ...]:
        """The names of all groups that were joined or have committed offsets."""
        return tuple(sorted({*self._groups, *self.offsets.groups}))

    def close(self) -> None:
        """End all waits of members."""
        for group in tuple(self._groups.values()):
            group.close()

    def _new_group(self) -> BrokerGroup:
        return BrokerGroup(max_members=self._config.max_group_members)
