"""The programs of the stores. Those that are not Python packages come from registries into the user's cache, once."""

import os
import subprocess
from pathlib import Path

from resources.machines.java import cache_dir
from tests.brokers import jars

VERSITYGW, AZURITE, HADOOP = "1.8.0", "3.35.0", "3.5.0"
_INSTALL_S = 500
_MODULES = (
    f"org.apache.hadoop:hadoop-client-minicluster:{HADOOP}",
    "org.junit.jupiter:junit-jupiter-api:5.13.4",  # the mini cluster imports its assertions
    "org.bouncycastle:bcpkix-jdk18on:1.82",  # the ResourceManager creates certificates for its proxy
)


def versitygw() -> Path:
    """The gateway, which Go's own client builds from its module."""
    folder = _folder(f"versitygw-{VERSITYGW}")
    program = folder / "versitygw"
    if not program.exists():
        module = f"github.com/versity/versitygw/cmd/versitygw@v{VERSITYGW}"
        subprocess.run(
            ["go", "install", module], env={**os.environ, "GOBIN": str(folder)}, check=True, timeout=_INSTALL_S
        )
    return program


def azurite() -> Path:
    """The script of the server of blobs, in npm's package."""
    folder = _folder(f"azurite-{AZURITE}")
    script = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if not script.exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"azurite@{AZURITE}"]
        subprocess.run(command, cwd=folder, check=True, timeout=_INSTALL_S)
    return script


def hadoop() -> Path:
    """The folder with the jars of small clusters of HDFS and YARN."""
    lines = "\n".join(jars._DEPENDENCY.format(*module.split(":")) for module in _MODULES)
    return jars.jars_folder(f"hadoop-{HADOOP}", jars.IVY_FILE.format(dependencies=lines))


def _folder(name: str) -> Path:
    folder = cache_dir() / "stores" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
