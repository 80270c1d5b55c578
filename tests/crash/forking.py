"""The server from which all processes of these tests are forked."""

import multiprocessing
from multiprocessing.context import ForkServerContext

from tests.crash import child


def forking() -> ForkServerContext:
    """What starts them: one server for the test's process, which has `child` imported.

    It is started by the first process that anybody asks of it, and imports nothing later: so all ask here.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([child.__name__])
    return context
