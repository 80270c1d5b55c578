"""Encoders: they turn the values and keys that users send into bytes [kafka-0.7: Producers]."""

from typing import Any, Protocol


class Encoder(Protocol):
    """Turns a value or key into bytes. It runs on the thread that sends, so its errors are raised to the caller.

    >>> class NumberEncoder:
    ...     def encode(self, data: Any) -> bytes | None:
    ...         return b"%d" % data
    >>> NumberEncoder().encode(7)
    b'7'
    """

    def encode(self, data: Any) -> bytes | None:
        """The bytes of `data`; None stays None."""


class BytesEncoder:
    """Passes bytes through unchanged; the default.

        >>> BytesEncoder().encode(b"as it is")
        b'as it is'

    Raises:
        TypeError: the data is not bytes.
    """

    def encode(self, data: Any) -> bytes | None:
        """The same bytes."""
        if data is None or isinstance(data, bytes):
            return data
        if isinstance(data, bytearray | memoryview):
            return bytes(data)
        raise TypeError(f"without an encoder only bytes can be sent, not {type(data).__name__}: choose an encoder")


class TextEncoder:
    """Encodes text as UTF-8.

        >>> TextEncoder().encode("text")
        b'text'

    Raises:
        TypeError: the data is not text.
    """

    def encode(self, data: Any) -> bytes | None:
        """The text's bytes."""
        if data is None:
            return None
        if isinstance(data, str):
            return data.encode()
        raise TypeError(f"TextEncoder takes text, not {type(data).__name__}")
