"""The last message before a position of a log, as a digest that a later read of the same message gives again."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import pyarrow as pa

_COLUMNS = ("offset", "inner", "timestamp", "key", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastMessage:
    """The offset of a message, and the digest of its content."""

    offset: int
    digest: str

    @classmethod
    def of(cls, rows: pa.RecordBatch, index: int = -1) -> Self:
        """The message in one of the decoded rows, usually in the last one."""
        index %= rows.num_rows
        digest = blake2b(digest_size=16)
        for name in _COLUMNS:
            if name in rows.schema.names:
                scalar = rows.column(name)[index]
                content = scalar.value if isinstance(scalar, pa.TimestampScalar) else scalar.as_py()
                data = content if isinstance(content, bytes) else str(content).encode()
                digest.update(f"{name} {type(content).__name__} {len(data)} ".encode() + data)
        return cls(offset=rows.column("offset")[index].as_py(), digest=digest.hexdigest())
