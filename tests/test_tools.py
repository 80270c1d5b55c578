"""`make tools` installs the programs that tests run, or stops with the command that installs them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import tools
from tests.kerberos import package
from tests.tools import BROWSER, DRIVER, KDB, KDC, OPENSSL, TOOLS, ToolsMissing, install_missing

RUN_THIS = "sudo apt-get update && sudo apt-get install -y --no-install-recommends chromium chromium-driver\n"
INSTALLED = ("openssl", "keytool", "systemd-analyze")
# A fake apt-get. It stores its arguments, and installs the programs if `works` is 1.
APT_GET = """\
#!/bin/sh
echo "$@" >> "{folder}/calls"
[ "$1" = install ] && [ {works} = 1 ] && touch "{folder}/chromium" "{folder}/chromedriver"
chmod +x "{folder}"/chrom* 2> /dev/null
[ {works} = 1 ] || {{ echo "no space left" >&2; exit 100; }}
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`machine(scripts, user id)` creates the only folder on the PATH: these scripts, and all tools but Chromium."""

    def machine(scripts: dict[str, str], user: int) -> Path:
        others = {tool.commands[0]: "#!/bin/sh\n" for tool in TOOLS if tool not in {BROWSER, DRIVER}}
        for name, script in {**others, **scripts}.items():
            (tmp_path / name).write_text(script)
            (tmp_path / name).chmod(0o755)
        for name in ("env", "sh", "touch", "chmod"):
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(os, "geteuid", lambda: user)
        return tmp_path

    return machine


def apt_get(folder: Path, *, works: bool = True) -> str:
    return APT_GET.format(folder=folder, works=int(works))


def test_nothing_is_installed_if_all_programs_exist(machine: Callable[..., Path], tmp_path: Path) -> None:
    scripts = {"google-chrome": "#!/bin/sh\n", "chromedriver": "#!/bin/sh\n", "apt-get": apt_get(tmp_path)}
    folder = machine(scripts, 0)
    install_missing(TOOLS)
    assert not (folder / "calls").exists()
    assert BROWSER.find() == str(folder / "google-chrome")


def test_root_installs_the_missing_programs(machine: Callable[..., Path], tmp_path: Path) -> None:
    folder = machine({"apt-get": apt_get(tmp_path)}, 0)
    install_missing(TOOLS)
    assert (folder / "calls").read_text().splitlines() == [
        "update -qq",
        "install -y -qq --no-install-recommends chromium chromium-driver",
    ]
    assert [tool.find() for tool in TOOLS] == [str(folder / tool.commands[0]) for tool in TOOLS]


def test_sudo_is_used_if_it_needs_no_password(machine: Callable[..., Path], tmp_path: Path) -> None:
    sudo = '#!/bin/sh\nshift\n[ "$1" = true ] || exec "$@"\n'
    folder = machine({"apt-get": apt_get(tmp_path), "sudo": sudo}, 1000)
    install_missing([BROWSER])
    assert BROWSER.find() == str(folder / "chromium")


@pytest.mark.parametrize(
    "scripts", [{}, {"apt-get": "#!/bin/sh\n"}, {"apt-get": "#!/bin/sh\n", "sudo": "#!/bin/sh\nexit 1\n"}]
)
def test_without_the_rights_the_command_to_run_is_shown(scripts: dict[str, str], machine: Callable[..., Path]) -> None:
    machine(scripts, 1000)
    with pytest.raises(ToolsMissing, match="tests need them: chromedriver"):
        _ = DRIVER.path
    with pytest.raises(SystemExit) as stopped:
        tools.main()
    assert "tests need them: chromium, chromedriver.\n" in str(stopped.value)
    assert RUN_THIS in str(stopped.value)


def test_an_installation_that_fails_shows_its_error_and_the_command(
    machine: Callable[..., Path], tmp_path: Path
) -> None:
    machine({"apt-get": apt_get(tmp_path, works=False)}, 0)
    with pytest.raises(ToolsMissing, match="`apt-get update -qq` failed here:\nno space left") as missing:
        install_missing([BROWSER, DRIVER, OPENSSL])
    assert RUN_THIS in str(missing.value)


def test_an_installation_without_the_programs_is_a_failure(machine: Callable[..., Path]) -> None:
    machine({"apt-get": "#!/bin/sh\n"}, 0)
    with pytest.raises(ToolsMissing, match="tests need them: chromium, chromedriver"):
        install_missing(TOOLS)


def test_make_tools_ends_with_an_error_and_without_a_traceback(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.tools"],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stderr.startswith("These programs are not on the PATH")


def test_each_debian_package_is_named_once_and_servers_are_found_outside_of_the_path(
    machine: Callable[..., Path], tmp_path: Path
) -> None:
    folder = machine({"apt-get": apt_get(tmp_path)}, 0)
    servers = [replace(tool, folders=str(folder / "sbin")) for tool in (KDC, KDB)]
    (folder / "sbin").mkdir()
    for tool in servers:
        (folder / tool.commands[0]).unlink()
    with pytest.raises(ToolsMissing, match=r"install -y --no-install-recommends krb5-kdc\n"):
        install_missing(servers)
    for tool in servers:
        (folder / "sbin" / tool.commands[0]).write_text("#!/bin/sh\n")
        (folder / "sbin" / tool.commands[0]).chmod(0o755)
    assert [tool.path for tool in servers] == [str(folder / "sbin" / name) for name in ("krb5kdc", "kdb5_util")]


def test_the_package_for_kerberos_is_installed_if_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    monkeypatch.setattr(package, "_PIP", ("sh", "-c", f'echo "$PYTHONPATH $@" >> {calls}', "pip"))
    monkeypatch.setattr(package, "find_spec", lambda _: object())
    package.install()
    assert not calls.exists()
    monkeypatch.setattr(package, "find_spec", lambda _: None)
    package.install()
    built_with, built = calls.read_text().splitlines()
    assert "--require-hashes --target " in built_with
    assert built_with.endswith("build.lock")
    assert re.fullmatch(r"\S+ --require-hashes --no-build-isolation -r \S+/gssapi\.lock", built)
    monkeypatch.setattr(package, "_PIP", ("sh", "-c", "echo no krb5.h >&2; exit 1", "pip"))
    with pytest.raises(package.NotInstalled, match=r"tests of Kerberos need it\. pip says:\nno krb5\.h"):
        package.install()
