"""The statuses that kernels of JSON return: OK, FULL, or a reason (the decoder of JSON has the sentences)."""

OK = 0
FULL = 1  # a buffer is full: the row is undone, and decoded again once there is room

EMPTY, CUT, SECOND_DOCUMENT, TOO_DEEP = range(2, 6)
NOT_A_VALUE, NOT_A_KEY, BAD_SEPARATOR, BAD_LITERAL, BAD_NUMBER = range(6, 11)
BAD_UTF8, CONTROL_CHARACTER, BAD_ESCAPE, LONE_SURROGATE = range(11, 15)
DUPLICATE_KEY, WRONG_TYPE, NOT_AN_INTEGER, OUT_OF_RANGE, INEXACT, BAD_DATE, BAD_TIME, WRONG_ZONE, BAD_BASE64 = range(
    15, 24
)
INTO_TEXT = 24  # an object has a key that its struct lacks, and JSON text can hold it: it is decoded again as text
