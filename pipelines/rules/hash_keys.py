"""The keys of hashes: plans and tasks refer to them, and each process reads them itself.

All processes of a load must have the same key, and so must all loads of a table: otherwise one person would have two
hashes, and nobody would notice it. So the plan has a check of each key, which is the hash of a constant, and so has the
ledger.
"""

import hmac
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from kafka_io.errors import SecretMissing
from kafka_io.net.secret import Secret, SecretReference

if TYPE_CHECKING:  # numba is slow to import, and a driver that decodes nothing needs none
    from kafka_io.hashes.keyed_hashes import KeyedHash

_CONSTANT = b"penstock checks that this key is the same"
_MIN_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HashKey:
    """Where a process finds a key of hashes.

    Args:
        id: the id that the hashes begin with.
        reference: where the key is.
        check: the check of the key that the driver of the load has read; empty if nobody has read it yet.
    """

    id: str
    reference: SecretReference
    check: str = ""

    def checked(self) -> Self:
        """The same key with its check.

        Raises:
            SecretMissing: this process cannot read the key.
        """
        return replace(self, check=_check_of(self.read()))

    def hashes(self) -> "KeyedHash":
        """The hashes of the key.

        Raises:
            SecretMissing: this process cannot read the key, or finds another one than the driver.
        """
        return _hashes(self)

    def read(self) -> Secret:
        """The key itself.

        Raises:
            SecretMissing: this process cannot read it, or it is too short.
        """
        secret = self.reference.read()
        if len(secret.reveal()) < _MIN_BYTES:
            raise SecretMissing(
                f"the secret {self.reference} is shorter than {_MIN_BYTES} bytes, so others could guess the key of the "
                f"hashes {self.id}; make one with `openssl rand -hex 32`"
            )
        return secret


@lru_cache(maxsize=64)
def _hashes(key: HashKey) -> "KeyedHash":
    """The hashes of a key. A process reads each key once, so that a load has one even if the file changes meanwhile."""
    from kafka_io.hashes.keyed_hashes import KeyedHash  # noqa: PLC0415 - see TYPE_CHECKING

    secret = key.read()
    if key.check and _check_of(secret) != key.check:
        raise SecretMissing(
            f"the secret {key.reference} of this process is another key than the one with which the load was planned; "
            f"hashes that begin with {key.id} would differ for the same value. Give all machines the same key"
        )
    return KeyedHash(key.id, secret.reveal())


def _check_of(secret: Secret) -> str:
    return hmac.digest(secret.reveal(), _CONSTANT, "sha256").hex()[:32]
