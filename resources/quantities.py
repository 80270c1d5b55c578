"""Numbers, durations and sizes as people read them. JSON has the plain numbers, with the unit in the name of the field.

A size has decimal units, as the labels of disks and networks have them: 1 kB is 1000 bytes.
"""

_TIME_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_MINUTE_S = 60


def count(number: float) -> str:
    """A whole number with separators of thousands: `1,234,567`."""
    return f"{number:,.0f}" if isinstance(number, float) else f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 topic`, `1,200 topics`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """The two largest units, rounded down: `4 d 3 h`, `3 min 20 s`, `0 s`. A negative duration begins with a minus."""
    remaining_s = int(abs(seconds))
    parts: list[tuple[int, str]] = []
    for unit, unit_s in _TIME_UNITS:
        units, remaining_s = divmod(remaining_s, unit_s)
        if units or parts:
            parts.append((units, unit))
    text = " ".join(f"{units:,} {unit}" for units, unit in parts[:2] if units) or "0 s"
    return f"-{text}" if seconds <= -1 else text


def run_time(seconds: float) -> str:
    """How long something took. Below a minute it has tenths of a second: `0.4 s`."""
    tenths = round(seconds, 1)
    return f"{tenths:.1f} s" if tenths < _MINUTE_S else duration(seconds)


def size(size_bytes: float) -> str:
    """A size with the largest unit of which it has at least one: `731 B`, `1.2 GB`, `252 GB`.

    From 100 units on it has no decimals.
    """
    value, exponent = abs(size_bytes), 0
    while round(value) >= 1000 and exponent < len(_SIZE_UNITS) - 1:
        value /= 1000
        exponent += 1
    decimals = 0 if exponent == 0 or round(value, 1) >= 100 else 1
    return f"{'-' if size_bytes < 0 else ''}{value:,.{decimals}f} {_SIZE_UNITS[exponent]}"


def as_text(name: str, number: float) -> str:
    """The value of a field, in the unit that its name has: `bytes`, `seconds`, or names that end so or with `_s`."""
    unit = name.rpartition("_")[2]
    if unit == "bytes":
        return size(number)
    if unit == "seconds":
        return run_time(number)
    if unit == "s":
        return duration(number)
    return count(number) if isinstance(number, int) else f"{number:,.1f}"
