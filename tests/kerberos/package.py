"""Installs the package `gssapi`, the extra `kerberos`, for the tests.

It has no wheels for Linux, so it is compiled, which needs libkrb5-dev. That is why it is not in requirements.lock: the
lock can be installed on a machine without a compiler. The files beside this module pin it and what it is built with.
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

_FOLDER = Path(__file__).parent
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
_LONGEST_S = 600


class NotInstalled(Exception):
    """The package could not be installed; the message has the output of pip."""


def install() -> None:
    """Install the package, unless it is installed.

    Raises:
        NotInstalled: pip failed.
    """
    if find_spec("gssapi") is not None:
        return
    sys.stdout.write("Installing the package gssapi, which is compiled\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as build:
        _pip("--target", build, "--only-binary", ":all:", "-r", str(_FOLDER / "build.lock"))
        # Tests need no fast code, and a minute less of compiling.
        variables = {"PYTHONPATH": build, "CFLAGS": "-O0 -g0"}
        _pip("--no-build-isolation", "-r", str(_FOLDER / "gssapi.lock"), **variables)


def _pip(*arguments: str, **variables: str) -> None:
    completed = subprocess.run(
        [*_PIP, "--require-hashes", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
    if completed.returncode != 0:
        raise NotInstalled(
            f"The package gssapi could not be installed; tests of Kerberos need it. pip says:\n{completed.stderr}"
        )
