"""Runs moto's S3 until the process is killed; prints the port, the access key and its secret.

moto checks each request's signature: without the key it answers 403, as S3 does.
"""

import json
import logging
import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from moto import settings
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

_READS = {"GET", "HEAD"}
REGION = "us-east-1"
_USER = "penstock"
_ACCOUNT = "123456789012"  # the only one of moto
_ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def _with_single_writer(app: Any) -> Any:
    """The application, without two writes at a time: moto checks whether an object exists, and then stores it."""
    lock = threading.Lock()

    def serve(environ: Mapping[str, Any], start_response: Any) -> Any:
        with nullcontext() if environ["REQUEST_METHOD"] in _READS else lock:
            return app(environ, start_response)

    return serve


def main(bucket: str) -> None:
    """Create the bucket and a user with all rights on it, and serve."""
    users = iam_backends[_ACCOUNT]["aws"]
    users.create_user(REGION, _USER)
    users.put_user_policy(_USER, "all", json.dumps(_ALLOW))
    key = users.create_access_key(_USER)
    s3_backends[_ACCOUNT]["aws"].create_bucket(bucket, REGION)
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # Without HTTP/1.1 each request opens a connection.
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    server = make_server("127.0.0.1", 0, _with_single_writer(create_backend_app("s3")), threaded=True)
    sys.stdout.write(f"{server.port} {key.access_key_id} {key.secret_access_key}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
