"""Reads the cursors of sensors."""

from typing import TypeVar

import msgspec

from kafka_io.typed_json import decode_json

Cursor = TypeVar("Cursor")


def cursor_from(text: str | None, kind: type[Cursor]) -> Cursor:
    """The cursor of this type in a text, which is JSON. Without a text, or if it is unreadable, the cursor is empty."""
    try:
        return decode_json(text or "{}", kind)
    except msgspec.DecodeError:
        return kind()
