"""A certificate authority for tests, and the certificates that it signs. openssl creates them."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_DAYS = ("-days", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate and its key, as PEM files without a password."""

    certificate: Path
    key: Path

    def packed(self, password: str) -> Path:
        """A new PKCS12 file with the certificate and the key. Brokers of all versions can read it."""
        store = self.certificate.with_suffix(".p12")
        files = ("-in", str(self.certificate), "-inkey", str(self.key), "-out", str(store))
        _openssl("pkcs12", "-export", "-passout", f"pass:{password}", *files)
        return store


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority with its files in `folder`."""

    folder: Path
    own: Certificate
    """The authority's own certificate, which clients must trust."""

    @classmethod
    def create_in(cls, folder: Path) -> Self:
        """Create a new authority in a new folder."""
        folder.mkdir(parents=True)
        own = Certificate(certificate=folder / "authority.pem", key=folder / "authority.key")
        files = ("-keyout", str(own.key), "-out", str(own.certificate))
        _openssl("req", "-x509", *_KEY, *_DAYS, "-subj", "/CN=tests", *files)
        return cls(folder=folder, own=own)

    def sign(self, name: str) -> Certificate:
        """A new certificate for `name`, valid for 127.0.0.1 and localhost."""
        certificate = Certificate(certificate=self.folder / f"{name}.pem", key=self.folder / f"{name}.key")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        _openssl("req", *_KEY, "-subj", f"/CN={name}", "-keyout", str(certificate.key), "-out", str(request))
        signer = ("-CA", str(self.own.certificate), "-CAkey", str(self.own.key), "-CAcreateserial")
        files = ("-in", str(request), "-extfile", str(extensions), "-out", str(certificate.certificate))
        _openssl("x509", "-req", *_DAYS, *signer, *files)
        return certificate


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], capture_output=True, check=True, timeout=60)
