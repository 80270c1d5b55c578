"""Lets the hostile server speak TLS, with a certificate of tests/golden/tls."""

import ssl
from pathlib import Path

from kafka_io.net.tls import wrapped_in_tls
from tests.fakes.hostile import Act, Peer

GOLDEN = Path(__file__).parents[1] / "golden" / "tls"
CA = str(GOLDEN / "ca.pem")


def serving(
    certificate: str = "broker", *, loaders_only: bool = False, only: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    """The TLS settings of a broker.

    Args:
        certificate: the name of the broker's certificate in tests/golden/tls.
        loaders_only: whether the client must show a certificate that `ca.pem` has signed.
        only: the only TLS version that the broker accepts; any version if it is None.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(GOLDEN / f"{certificate}.pem")
    if loaders_only:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CA)
    if only is not None:
        context.minimum_version = context.maximum_version = only
    return context


def over_tls(context: ssl.SSLContext, *acts: Act) -> Act:
    """An act that does a TLS handshake and then does `acts` over TLS: they read and send the decrypted bytes."""

    def act(peer: Peer) -> None:
        with wrapped_in_tls(peer.socket, context, server_side=True) as peer.socket:
            peer.socket.do_handshake()
            for next_act in acts:
                next_act(peer)

    return act
