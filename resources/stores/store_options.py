"""The options of a lake's store, as its clients need them."""

import re
from collections.abc import Mapping
from datetime import timedelta

from kafka_io.net.secret import SecretReference, is_reference

_DURATION = re.compile(r"(\d+)\s*([a-z]+)\s*", re.IGNORECASE)
_SECONDS = {
    1e-9: ("ns", "nsec"),
    1e-6: ("us", "usec"),
    1e-3: ("ms", "msec"),
    1: ("s", "sec", "secs", "second", "seconds"),
    60: ("m", "min", "mins", "minute", "minutes"),
    3600: ("h", "hr", "hrs", "hour", "hours"),
    86400: ("d", "day", "days"),
}
_SECONDS_OF_UNIT = {unit: seconds for seconds, units in _SECONDS.items() for unit in units}


def store_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options for deltalake, with the secrets that this process reads in the place of their references.

    Raises:
        SecretMissing: a variable or file does not exist, or is empty.
    """
    return {
        name: SecretReference.parse(value).read().reveal().decode(errors="replace") if is_reference(value) else value
        for name, value in options.items()
    }


def duration(text: str) -> timedelta:
    """The length of a time such as `200ms` or `1m 30s`, as deltalake reads it.

    Raises:
        ValueError: the text is no such time.
    """
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"{text!r} is no length of time")
    try:
        return timedelta(seconds=sum(int(number) * _SECONDS_OF_UNIT[unit.lower()] for number, unit in parts))
    except KeyError as unit:
        raise ValueError(f"{text!r} has the unknown unit {unit}") from None
