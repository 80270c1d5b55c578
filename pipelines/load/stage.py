"""What the five stages of a load have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_io.errors import LocatedError
from kafka_io.model import BrokerPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The result of one stage of a step, which the next stage receives. No stage changes the value of another one.

    Args:
        errors: why partitions are not loaded; the other partitions are.
        warnings: sentences for the user.
    """

    errors: Mapping[BrokerPartition, LocatedError] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
