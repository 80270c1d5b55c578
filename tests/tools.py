"""The programs that tests run, such as a browser, openssl and a KDC. `make tools` installs those that are missing.

It also installs the package for Kerberos (see kerberos/package.py), and makes an archive that lets Spark start faster
(see class_archive.py).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests import class_archive
from tests.kerberos import package

_INSTALL = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
_NOT_INTERACTIVE = ("env", "DEBIAN_FRONTEND=noninteractive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program that is on the PATH under any name in `commands`. `package` is the Debian package of the first.

    `folders` are searched after the PATH: servers are where only the PATH of root has them.
    """

    commands: tuple[str, ...]
    package: str
    folders: str = ""

    def find(self) -> str | None:
        """The path of the first of its commands that is installed; None if no command is installed."""
        path = os.pathsep.join(filter(None, (os.environ.get("PATH"), self.folders)))
        return next(filter(None, (shutil.which(command, path=path) for command in self.commands)), None)

    @property
    def path(self) -> str:
        """The path of the first of its commands that is installed.

        Raises:
            ToolsMissing: none of its commands is installed.
        """
        path = self.find()
        if path is None:
            raise ToolsMissing(_explanation([self]))
        return path


BROWSER = Tool(commands=("chromium", "chromium-browser", "google-chrome"), package="chromium")
DRIVER = Tool(commands=("chromedriver",), package="chromium-driver")
OPENSSL = Tool(commands=("openssl",), package="openssl")
KEYTOOL = Tool(commands=("keytool",), package="openjdk-17-jre-headless")
_SERVERS = "/usr/sbin"
KDC = Tool(commands=("krb5kdc",), package="krb5-kdc", folders=_SERVERS)
KDB = Tool(commands=("kdb5_util",), package="krb5-kdc", folders=_SERVERS)
KADMIN = Tool(commands=("kadmin.local",), package="krb5-admin-server", folders=_SERVERS)
KINIT = Tool(commands=("kinit",), package="krb5-user")
# The package for Kerberos is compiled.
KERBEROS_LIBRARY = Tool(commands=("krb5-config",), package="libkrb5-dev")
COMPILER = Tool(commands=("gcc", "cc"), package="gcc")
ANALYZE = Tool(commands=("systemd-analyze",), package="systemd")
TOOLS = (BROWSER, DRIVER, OPENSSL, KEYTOOL, KDC, KDB, KADMIN, KINIT, KERBEROS_LIBRARY, COMPILER, ANALYZE)


class ToolsMissing(Exception):
    """Programs are missing and could not be installed; the message has the command to run."""


def install_missing(tools: Sequence[Tool]) -> None:
    """Install those of `tools` that are not on the PATH, as root or through a sudo that asks for no password.

    Raises:
        ToolsMissing: there is no apt-get, this user may not run it, or it failed.
    """
    missing = [tool for tool in tools if tool.find() is None]
    if not missing:
        return
    packages = _packages(missing)
    prefix = _root_prefix()
    if shutil.which("apt-get") is None or prefix is None:
        raise ToolsMissing(_explanation(missing))
    sys.stdout.write(f"Installing {', '.join(packages)}\n")
    for command in (["apt-get", "update", "-qq"], [*_INSTALL, *packages]):
        completed = subprocess.run([*prefix, *_NOT_INTERACTIVE, *command], capture_output=True, text=True, check=False)
        if completed.returncode != 0:
            raise ToolsMissing(f"{_explanation(missing)}\n`{' '.join(command)}` failed here:\n{completed.stderr}")
    missing = [tool for tool in missing if tool.find() is None]
    if missing:
        raise ToolsMissing(_explanation(missing))


def _root_prefix() -> list[str] | None:
    """The prefix with which root runs a command; None if this user cannot become root without a password."""
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None


def as_root() -> list[str]:
    """The same for a command that may also fail: empty if this user cannot become root without a password."""
    return _root_prefix() or []


def _packages(tools: Sequence[Tool]) -> list[str]:
    return list(dict.fromkeys(tool.package for tool in tools))


def _explanation(missing: Sequence[Tool]) -> str:
    packages = " ".join(_packages(missing))
    return f"""\
These programs are not on the PATH, and tests need them: {", ".join(tool.commands[0] for tool in missing)}.
Install them, then run make again. On Debian:

    sudo apt-get update && sudo apt-get install -y --no-install-recommends {packages}

On other systems install Chromium (or Google Chrome), the chromedriver of the same version, openssl, a Java with
keytool, and MIT Kerberos with its server and its header files; for example on Fedora: sudo dnf install chromium
chromedriver openssl java-17-openjdk-headless krb5-server krb5-workstation krb5-devel gcc
"""


def main() -> None:
    """Install the missing programs, or stop with the command that installs them."""
    try:
        install_missing(TOOLS)
        package.install()
    except (ToolsMissing, package.NotInstalled) as error:
        sys.exit(str(error))
    class_archive.make()


if __name__ == "__main__":
    main()
