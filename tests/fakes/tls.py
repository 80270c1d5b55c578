"""TLS for the hostile server: its acts, over TLS with a certificate of tests/golden/tls."""

import ssl
from pathlib import Path

from tests.fakes.hostile import Act, Peer

GOLDEN = Path(__file__).parents[1] / "golden" / "tls"
CA = str(GOLDEN / "ca.pem")


def serving(
    certificate: str = "broker", *, loaders_only: bool = False, only: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """A broker's side of TLS: its certificate, whether it demands one of ours, the only version it speaks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(GOLDEN / f"{certificate}.pem")
    if loaders_only:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CA)
    if only is not None:
        context.minimum_version = context.maximum_version = only
    return context


def over_tls(context: ssl.SSLContext, *acts: Act) -> Act:
    """`acts` as TLS has them: their bytes are what the client's user sees."""

    def act(peer: Peer) -> None:
        with context.wrap_socket(peer.socket, server_side=True) as peer.socket:
            for next_act in acts:
                next_act(peer)

    return act
