"""From what users send to bytes (seed 003, Encoder)."""

from typing import Any, Protocol


class Encoder(Protocol):
    """Makes bytes of a value or key; it is called on the thread that sends, so its errors reach who caused them.

    >>> class NumberEncoder:
    ...     def encode(self, data: Any) -> bytes | None:
    ...         return b"%d" % data
    >>> NumberEncoder().encode(7)
    b'7'
    """

    def encode(self, data: Any) -> bytes | None:
        """The bytes of `data`; None stays None."""
        ...


class BytesEncoder:
    """Takes bytes as they are.

        >>> BytesEncoder().encode(b"as it is")
        b'as it is'

    Raises:
        TypeError: what is to be sent is not bytes.
    """

    def encode(self, data: Any) -> bytes | None:
        """The same bytes."""
        if data is None or isinstance(data, bytes):
            return data
        if isinstance(data, bytearray | memoryview):
            return bytes(data)
        raise TypeError(f"bytes are sent as they are; {type(data).__name__} needs an encoder")


class TextEncoder:
    """Writes text in UTF-8.

        >>> TextEncoder().encode("text")
        b'text'

    Raises:
        TypeError: what is to be sent is not text.
    """

    def encode(self, data: Any) -> bytes | None:
        """The text's bytes."""
        if data is None:
            return None
        if isinstance(data, str):
            return data.encode()
        raise TypeError(f"text is encoded here, not {type(data).__name__}")
