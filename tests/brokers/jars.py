"""The jars of a broker. PySpark's Ivy downloads them once into the user's cache."""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from resources.machines.java import cache_dir, find_java
from resources.machines.processes import dying_with_parent
from tests.brokers.releases import RELEASES, Release

_DOWNLOAD_S = 280
_LOG_LINES = 15
_SIZES = "sizes"  # lists the jars of a folder
IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="penstock" module="broker"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{0}" name="{1}" rev="{2}" conf="default"/>'
_EXCLUDED = '    <exclude org="{0}" module="{1}"/>'


class JarsNotFound(RuntimeError):
    """The jars are not in the cache and could not be downloaded. The message has the end of Ivy's log."""


def classpath(version: str) -> str:
    """The Java class path of a broker version. Missing jars are downloaded.

    Raises:
        JarsNotFound: they could not be downloaded.
        JavaNotFound: there is no Java to run Ivy.
    """
    return str(jars_folder(version, _ivy_file(version, RELEASES[version])) / "*")


def jars_folder(name: str, ivy_file: str, *, types: str = "jar bundle") -> Path:
    """The folder with the jars that an Ivy file lists. Missing jars are downloaded.

    `name` is the readable part of the folder's name, `types` are the types of Ivy's artifacts.

    Raises:
        JarsNotFound: they could not be downloaded.
        JavaNotFound: there is no Java to run Ivy.
    """
    root = cache_dir() / "brokers"
    root.mkdir(exist_ok=True)
    # The name contains a hash of the Ivy file, so a changed row of RELEASES is downloaded again.
    folder = root / f"{name}-{hashlib.sha256(ivy_file.encode()).hexdigest()[:12]}"
    if not _is_complete(folder):
        with _locked(root / "lock"):
            if not _is_complete(folder):  # another process may have downloaded it while we waited
                _fill(folder, ivy_file, types, ivy_home=root / "ivy")
    return folder


def _ivy_file(version: str, release: Release) -> str:
    modules = (f"org.apache.kafka:kafka_{release.scala}:{version}", *release.added)
    lines = [_DEPENDENCY.format(*module.split(":")) for module in modules]
    lines += [_EXCLUDED.format(*module.split(":")) for module in release.excluded]
    return IVY_FILE.format(dependencies="\n".join(lines))


def _is_complete(folder: Path) -> bool:
    """Whether every listed jar exists with the listed size."""
    try:
        listed = (folder / _SIZES).read_text()
        return listed == _sizes(folder) != ""
    except FileNotFoundError:  # the folder does not exist, or another process is replacing it
        return False


def _sizes(folder: Path) -> str:
    jars = (file for file in sorted(folder.iterdir()) if file.name.endswith((".jar", ".tar.gz")))
    return "".join(f"{jar.stat().st_size} {jar.name}\n" for jar in jars)


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Hold a lock between processes. The kernel releases the lock of a killed process."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill(folder: Path, ivy_file: str, types: str, ivy_home: Path) -> None:
    # The list of sizes is written after the jars, and the folder gets its name last: if this process is killed, the
    # next one sees no complete folder and downloads the jars again.
    partial = folder.with_name("partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    partial.mkdir()
    (partial / "ivy.xml").write_text(ivy_file)
    _retrieve(partial, types, ivy_home)
    (partial / _SIZES).write_text(_sizes(partial))
    partial.rename(folder)


def _retrieve(folder: Path, types: str, ivy_home: Path) -> None:
    """Run Ivy with its default settings: it uses its public repository and checks checksums."""
    (ivy_jar,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    java = [str(find_java() / "bin" / "java"), f"-Divy.home={ivy_home}", "-jar", str(ivy_jar)]
    arguments = ["-ivy", str(folder / "ivy.xml"), "-types", *types.split()]
    target = ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    log_file = folder / "ivy.log"
    with log_file.open("wb") as log:
        try:
            subprocess.run(
                [*java, *arguments, *target],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=_DOWNLOAD_S,
                check=True,
                preexec_fn=dying_with_parent(),
            )
        except subprocess.SubprocessError as error:
            lines = log_file.read_text(errors="replace").splitlines()
            raise JarsNotFound("\n".join(["Ivy failed. The end of its log:", *lines[-_LOG_LINES:]])) from error
