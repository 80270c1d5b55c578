"""Seconds as a person says them."""

_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def humane(seconds: float) -> str:
    """The two largest units, rounded down: `4 d 3 h`, `3 m 20 s`, `0 s`; with a minus in front below 0."""
    left = int(abs(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    told = " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"
    return f"-{told}" if seconds <= -1 else told
