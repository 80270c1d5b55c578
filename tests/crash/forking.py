"""The server from which all processes of these tests are forked."""

import multiprocessing
from multiprocessing.context import ForkServerContext

from tests.crash import child


def forking() -> ForkServerContext:
    """The fork server of this test process, which has imported `child`, the consumers and pyiceberg.

    The first process that is forked starts the server, and later the list of its imports cannot change. So all tests
    must get the server from this function.
    """
    context = multiprocessing.get_context("forkserver")
    preloaded = [child.__name__, "tests.crash.consumers", "tests.crash.chance", "pipelines.iceberg.iceberg_table"]
    context.set_forkserver_preload(preloaded)
    return context
