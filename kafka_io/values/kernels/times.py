"""Dates and times: from ISO 8601 texts and from numbers since the epoch, in the years 1 to 9999."""

from kafka_io.jit.compiling import device_function, merged, subroutine
from kafka_io.jit.scalars import ByteArray

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
DAY_US = 86_400_000_000
_ZERO, _POINT, _DASH, _PLUS, _COLON, _BLANK = (ord(character) for character in "0.-+: ")
_T, _LOWER_T, _Z, _LOWER_Z = (ord(character) for character in "TtZz")
_BAD = -1  # the position after a text that is not a date or time

# Zones of a timestamp's text.
NO_ZONE, HAS_ZONE = 0, 1


@device_function
def _digits(data: ByteArray, position: int, end: int, count: int) -> int:
    """The number of `count` digits; -1 if there are fewer."""
    if position + count > end:
        return _BAD
    number = 0
    for i in range(count):
        digit = int(data[position + i]) - _ZERO
        if digit < 0 or digit > 9:
            return _BAD
        number = 10 * number + digit
    return number


@merged
def _month_days(year: int, month: int) -> int:
    """Days of a month."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@subroutine
def scan_date(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A date YYYY-MM-DD: (position after it, or -1; days since 1970-01-01)."""
    year = _digits(data, position, end, 4)
    month = _digits(data, position + 5, end, 2)
    day = _digits(data, position + 8, end, 2)
    if year < 1 or day < 1 or month < 1 or month > 12 or day > _month_days(year, month):
        return _BAD, 0
    if data[position + 4] != _DASH or data[position + 7] != _DASH:
        return _BAD, 0
    # Years that begin in March have the leap day at their end; 400 of them have 146,097 days.
    shifted = year - 1 if month < 3 else year
    century_year = shifted % 400
    year_day = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = century_year * 365 + century_year // 4 - century_year // 100 + year_day
    return position + 10, shifted // 400 * 146_097 + days - 719_468


@subroutine
def scan_timestamp(data: ByteArray, position: int, end: int) -> tuple[int, int, int]:
    """A date and a time of day: (position after it, or -1; microseconds since 1970; NO_ZONE or HAS_ZONE).

    Between them is a T or a space. Seconds may be missing. The digits of a fraction after the sixth are cut.
    """
    position, days = scan_date(data, position, end)
    hour = _digits(data, position + 1, end, 2)
    minute = _digits(data, position + 4, end, 2)
    if position < 0 or hour < 0 or hour > 23 or minute < 0 or minute > 59 or data[position + 3] != _COLON:
        return _BAD, 0, NO_ZONE
    between = data[position]
    if between not in (_T, _LOWER_T, _BLANK):
        return _BAD, 0, NO_ZONE
    position += 6
    time_us = (hour * 60 + minute) * 60_000_000
    if position < end and data[position] == _COLON:
        second = _digits(data, position + 1, end, 2)
        if second < 0 or second > 59:
            return _BAD, 0, NO_ZONE
        position, fraction = _fraction(data, position + 3, end)
        time_us += second * 1_000_000 + fraction
    zone, position, zone_minutes = _zone(data, position, end)
    time_us += days * DAY_US - zone_minutes * 60_000_000
    if time_us < FIRST_DAY * DAY_US or time_us >= (LAST_DAY + 1) * DAY_US:
        return _BAD, 0, NO_ZONE
    return position, time_us, zone


@merged
def _fraction(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """A fraction of a second, if there is one: (position after it, microseconds)."""
    if position >= end or data[position] != _POINT:
        return position, 0
    position += 1
    start = position
    fraction = 0
    unit = 100_000
    while position < end and 0 <= int(data[position]) - _ZERO <= 9:
        fraction += unit * (int(data[position]) - _ZERO)
        unit //= 10
        position += 1
    return (position if position > start else _BAD), fraction


@merged
def _zone(data: ByteArray, position: int, end: int) -> tuple[int, int, int]:
    """The zone, if there is one: Z, +HH:MM, +HHMM or +HH: (NO_ZONE or HAS_ZONE, position after it, minutes)."""
    if position < 0 or position >= end:
        return NO_ZONE, position, 0
    sign = data[position]
    if sign in (_Z, _LOWER_Z):
        return HAS_ZONE, position + 1, 0
    if sign not in (_PLUS, _DASH):
        return NO_ZONE, position, 0
    hours = _digits(data, position + 1, end, 2)
    position += 3
    minutes = 0
    if position < end and data[position] == _COLON:
        minutes = _digits(data, position + 1, end, 2)
        position += 3
    elif _digits(data, position, end, 1) >= 0:
        minutes = _digits(data, position, end, 2)
        position += 2
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return HAS_ZONE, _BAD, 0
    offset = 60 * hours + minutes
    return HAS_ZONE, position, -offset if sign == _DASH else offset
