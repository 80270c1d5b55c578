"""The commands of docs/security.md convert Java's key stores into files with which Penstock can connect."""

import os
import subprocess
from pathlib import Path

import pytest

from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Tls
from kafka_io.net.tls import tls_context
from tests.docs.pages import ROOT, blocks
from tests.fakes.tls import GOLDEN
from tests.tools import KEYTOOL

PASSWORD = "store-password"
TRUST = (KEYTOOL.commands[0], "-importcert", "-noprompt", "-keystore", "trust.jks", "-storetype", "JKS")
KEY = (KEYTOOL.commands[0], "-genkeypair", "-keystore", "penstock.jks", "-storetype", "JKS", "-keyalg", "EC")


def run(folder: Path, *command: str) -> None:
    """Run a command in a folder."""
    environment = {**os.environ, "STORE_PASSWORD": PASSWORD, "KEY_PASSWORD": PASSWORD}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=120)


@pytest.mark.slow
def test_key_stores_of_java_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for authority in ("ca", "other-ca"):
        run(tmp_path, *TRUST, "-alias", authority, "-file", str(GOLDEN / f"{authority}.pem"), "-storepass", PASSWORD)
    run(tmp_path, *KEY, "-dname", "CN=penstock", "-alias", "own", "-storepass", PASSWORD, "-keypass", PASSWORD)
    [block] = [block for block in blocks(ROOT / "docs" / "security.md") if block.language == "sh"]
    commands = [command for command in block.commands() if not command.startswith("export ")]
    assert len(commands) == 4
    for command in commands:
        run(tmp_path, "bash", "-c", command)
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    tls = Tls(
        ca=str(tmp_path / "company-ca.pem"),
        certificate=str(tmp_path / "penstock.pem"),
        key=str(tmp_path / "penstock.key"),
        key_password=SecretReference("env", "KEY_PASSWORD"),
    )
    assert len(tls_context(tls).get_ca_certs()) == 2
    assert "ENCRYPTED" in (tmp_path / "penstock.key").read_text()
