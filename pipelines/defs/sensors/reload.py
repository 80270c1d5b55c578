"""Makes Dagster read the definitions again, so that topics which the sensor found become assets.

Neither `code_location_origin` nor `reload_code` is documented by Dagster; a test uses both with a running code server.
"""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError

_RELOAD_S = 30  # Dagster stops a tick after 60 s
_RELOAD = """
mutation ($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) {
  __typename ... on PythonError { message } } }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """What became of a request to read the definitions again.

    Args:
        done: whether runs of new assets can be requested in the same tick.
        sentence: what happened, and what the user can do.
    """

    done: bool
    sentence: str


def reload_definitions(context: dg.SensorEvaluationContext, webserver: str) -> Reload:
    """Make Dagster read the definitions of this code location again.

    Args:
        context: the context of the tick.
        webserver: the address of the webserver, for the case that it started the code server itself; or empty.
    """
    origin = context.code_location_origin
    if origin is None:
        return Reload(done=False, sentence="reload the code location")
    if hasattr(origin, "create_client"):  # a code server of its own, which the daemon and the webserver watch
        return _reload_code_server(origin.create_client())
    next_load_sentence = "the daemon loads the new assets within 65 seconds"
    if not webserver:
        return Reload(done=False, sentence=f"{next_load_sentence}; reload the code location in the UI")
    return Reload(done=False, sentence=f"{next_load_sentence}; {_reload_webserver(webserver, origin.location_name)}")


def _reload_code_server(client: Any) -> Reload:
    try:
        before = client.get_server_id()
        client.reload_code(timeout=_RELOAD_S)
        is_other = client.get_server_id() != before
    except DagsterUserCodeUnreachableError:
        # The server continues to load. The names of the new topics stay in the instance until a later tick.
        sentence = f"the code server has not loaded the new assets within {_RELOAD_S} s; a later tick requests the runs"
        return Reload(done=False, sentence=sentence)
    if is_other:
        return Reload(done=True, sentence="the code server has loaded the new assets")
    return Reload(
        done=False,
        sentence="restart the code server, or start it with `dagster code-server start`, which can reload itself",
    )


def _reload_webserver(webserver: str, location: str) -> str:
    body = json.dumps({"query": _RELOAD, "variables": {"name": location}}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{webserver.rstrip('/')}/graphql", data=body, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_RELOAD_S) as answer:  # noqa: S310 - the address of the settings
            result = json.load(answer)["data"]["reloadRepositoryLocation"]
    except TimeoutError:
        return f"the webserver {webserver} has not loaded them within {_RELOAD_S} s; it may show them later"
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else type(error).__name__
        return f"the webserver {webserver} could not be asked to show them ({reason}): reload the code location"
    if "message" in result:
        return f"the webserver could not load them: {result['message']}"
    return "the webserver shows them"
