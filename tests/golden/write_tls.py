"""Writes the files of tests/golden/tls with the command `openssl`: certificates of brokers and loaders for tests only.

    python -m tests.golden.write_tls

`ca.pem` signed all certificates except `other-ca.pem`. `broker.pem` is for 127.0.0.1 and broker.example, as is
`expired.pem`, which expired in 2020. `loader.pem` is the certificate of a client. These three files also contain the
private key. `encrypted.key` is the private key of `loader.pem`, encrypted with the password `letmein`. All certificates
except the expired one are valid until 2120.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parent / "tls"
PASSWORD = "letmein"
EPOCHS = {"expired": ("20200101000000Z", "20200201000000Z")}
LASTING = ("20200101000000Z", "21200101000000Z")
CONFIG = """
[ca]
default_ca = here
[here]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""
EXTENSIONS = {
    "ca": "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n",
    "broker": "subjectAltName=IP:127.0.0.1,DNS:broker.example\nextendedKeyUsage=serverAuth\n",
    "expired": "subjectAltName=IP:127.0.0.1,DNS:broker.example\nextendedKeyUsage=serverAuth\n",
    "loader": "extendedKeyUsage=clientAuth\n",
}


def write() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ca.cnf").write_text(CONFIG)
        (folder / "index.txt").touch()
        for ca in ("ca", "other-ca"):
            _signed(folder, ca, EXTENSIONS["ca"], by=ca)
            (FOLDER / f"{ca}.pem").write_bytes((folder / f"{ca}.crt").read_bytes())
        for leaf in ("broker", "expired", "loader"):
            linked = EXTENSIONS[leaf] + "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
            _signed(folder, leaf, linked, by="ca")
            (FOLDER / f"{leaf}.pem").write_bytes(
                (folder / f"{leaf}.key").read_bytes() + (folder / f"{leaf}.crt").read_bytes()
            )
        _openssl(
            folder, "pkcs8", "-topk8", "-in", "loader.key", "-out", "encrypted.key", "-passout", f"pass:{PASSWORD}"
        )
        (FOLDER / "encrypted.key").write_bytes((folder / "encrypted.key").read_bytes())


def _signed(folder: Path, name: str, extensions: str, *, by: str) -> None:
    start, end = EPOCHS.get(name, LASTING)
    (folder / f"{name}.ext").write_text(extensions)
    _openssl(folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{name}.key")
    _openssl(folder, "req", "-new", "-key", f"{name}.key", "-subj", f"/CN=penstock-test-{name}", "-out", f"{name}.csr")
    issuer = ["-selfsign"] if by == name else ["-cert", f"{by}.crt"]
    signing = ["ca", "-config", "ca.cnf", "-batch", "-notext", "-keyfile", f"{by}.key", *issuer]
    dated = ["-startdate", start, "-enddate", end, "-extfile", f"{name}.ext"]
    _openssl(folder, *signing, *dated, "-in", f"{name}.csr", "-out", f"{name}.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


if __name__ == "__main__":
    write()
