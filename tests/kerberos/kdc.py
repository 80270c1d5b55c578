"""A real KDC (MIT Kerberos) on a free port of the loopback address, with all of its files in one folder."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.brokers.ports import HOST, free_ports
from tests.tools import KADMIN, KDB, KDC, KINIT

REALM = "PENSTOCK.TEST"
_START_S = 30.0
_POLL_S = 0.02
# The names of hosts are used as they are written, so that nothing asks a name server. A client that finds no KDC on
# the UDP port would wait for a second before it tries TCP.
_CLIENT = """\
[libdefaults]
    default_realm = {realm}
    dns_canonicalize_hostname = false
    rdns = false
    dns_lookup_kdc = false
    dns_lookup_realm = false
    udp_preference_limit = 1
    default_ccache_name = FILE:{folder}/tickets
    default_client_keytab_name = FILE:{folder}/no-such.keytab
[realms]
    {realm} = {{
        kdc = {host}:{port}
    }}
[domain_realm]
    {host} = {realm}
"""
_SERVER = """\
[kdcdefaults]
    kdc_listen = {host}:{port}
    kdc_tcp_listen = {host}:{port}
[realms]
    {realm} = {{
        database_name = {folder}/principal
        key_stash_file = {folder}/stash
        acl_file = {folder}/kadm5.acl
        supported_enctypes = aes256-cts-hmac-sha1-96:normal
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kdc:
    """A running KDC. Its principals have random keys, each in a keytab of its own."""

    folder: Path
    port: int

    @property
    def config(self) -> Path:
        """The krb5.conf of clients."""
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables with which programs of Kerberos use this KDC."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.tickets}",
        }

    @property
    def tickets(self) -> Path:
        """The default ticket cache of clients. It does not exist at first."""
        return self.folder / "tickets"

    def keytab(self, principal: str) -> Path:
        """The keytab with the key of a principal."""
        return self.folder / f"{principal.replace('/', '-')}.keytab"

    def add(self, *principals: str) -> None:
        """Create principals, and a keytab for each."""
        commands = [
            command
            for principal in principals
            for command in (f"addprinc -randkey {principal}", f"ktadd -k {self.keytab(principal)} {principal}")
        ]
        self.run(KADMIN.path, "-r", REALM, stdin="".join(f"{command}\n" for command in commands))

    def remove(self, principal: str) -> None:
        """Delete a principal. Its keytab stays."""
        self.run(KADMIN.path, "-r", REALM, stdin=f"delprinc -force {principal}\n")

    def kinit(self, principal: str, *options: str) -> None:
        """Write a ticket of a principal into the ticket cache."""
        self.run(KINIT.path, *options, "-k", "-t", str(self.keytab(principal)), principal)

    def run(self, *command: str, stdin: str = "") -> None:
        """Run a program of Kerberos. An error shows what the program prints."""
        completed = subprocess.run(
            command,
            env=dict(self.environment),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, f"{command[0]}: {completed.stdout}"


@contextmanager
def running_kdc(folder: Path, *principals: str) -> Iterator[Kdc]:
    """Run a KDC with these principals for the length of a `with` block."""
    (port,) = free_ports(1)
    kdc = Kdc(folder=folder.resolve(), port=port)
    names = {"realm": REALM, "host": HOST, "port": port, "folder": kdc.folder}
    kdc.config.write_text(_CLIENT.format(**names))
    (kdc.folder / "kdc.conf").write_text(_SERVER.format(**names))
    kdc.run(KDB.path, "create", "-s", "-r", REALM, "-P", "master")
    kdc.add(*principals)
    with subprocess.Popen(
        [KDC.path, "-n", "-r", REALM], env=dict(kdc.environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        try:
            _wait(server, kdc.folder / "kdc.log")
            yield kdc
        finally:
            server.terminate()


def _wait(server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not (log.exists() and "commencing operation" in log.read_text()):
        assert server.poll() is None, f"the KDC ended: {server.stdout and server.stdout.read()!r}"
        assert time.monotonic() < deadline, "the KDC did not start"
        time.sleep(_POLL_S)
