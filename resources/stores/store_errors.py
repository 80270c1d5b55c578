"""Errors of stores: which of them would come again, and what they mean. Only this module decides it (fault N14).

deltalake prints a stack of messages, with colours: `Error performing GET <url> ... 403 Forbidden ... <answer>`. The
tests have messages of real stores.
"""

import errno
import re
from collections.abc import Sequence

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaProtocolError, SchemaMismatchError

from kafka_io.errors import LocatedError, system_reason

_FULL = {errno.ENOSPC, errno.EDQUOT}
_DECORATION = re.compile(r"\x1b\[[0-9;]*m|↳")
_ENDPOINT = re.compile(r"[Ee]rror performing [A-Z]+ (https?://[^/\s?@]+)(?=[/\s])")
_PATH = re.compile(r"local (?:file|directory) '([^']+)'")
_STATUS = r"(?:status(?: code)?|non-2xx status code):?\s+({})\b"
_SOURCES = "in `lake_options` or in the environment of this process"

_REFUSALS = (
    (r"NoSuchBucket|ContainerNotFound", "the store has no such bucket: check `lake`"),
    (
        r"InvalidAccessKeyId|SignatureDoesNotMatch|AuthenticationFailed|AuthorizationFailure|XAdminUserNotFound"
        r"|ExpiredToken|InvalidToken|lacked valid authentication|" + _STATUS.format("401"),
        f"the store does not accept the credentials: check those {_SOURCES}",
    ),
    (
        r"AccessDenied|lacked the necessary privileges|AccessControlException|" + _STATUS.format("403"),
        f"the store denies access: check the credentials {_SOURCES}, and what they may read and write",
    ),
    (
        r"Invalid Access Key|SAS query pair|[Uu]nable to decode service account",
        f"the credentials have another form than the store expects: check those {_SOURCES}",
    ),
    (
        r"UnknownConfigurationKey",
        "`lake_options` has an option that the store does not know: docs/object-stores.md lists some",
    ),
    (
        r"(?!.*NoSuchUpload).*(?:performing list request|[Ee]rror performing P(?:UT|OST)).*?" + _STATUS.format("404"),
        "the store does not find the place of the lake (status 404): check `lake` and `lake_options`",
    ),
    (
        _STATUS.format("400|405|411|501"),
        "the store does not take such a request (status {0}): check `lake` and `lake_options`",
    ),
)
"""Messages of errors that would come again, by a part of their text, with what to do; {0} is the status."""
_TEMPORARY = (
    (_STATUS.format(r"429|5\d\d"), "the store is busy or unavailable (status {0})"),
    (r"location (\S+) not found", "{0} is missing"),
    (
        r"(?i)error sending request|timed out|connect error|dns error|connection (?:closed|reset|refused)",
        "the store does not answer",
    ),
    (_STATUS.format(r"\d{3}"), "the store answers with status {0}"),
    (
        r"ParsedLogPath|LogSegment|commit files|Invalid JSON|MissingVersion|MissingMetadata|checkpoint",
        "entries of the Delta log are missing or damaged; `penstock verify` shows what can be read",
    ),
)
"""The meanings of other messages. Such an error may not come again."""
_REFUSAL_TYPES = (PermissionError, NotADirectoryError, SchemaMismatchError, DeltaProtocolError, pa.ArrowException)
_SYSTEM_ERROR = re.compile(r"\((?:os error|errno) (\d+)\)|\[errno (\d+)\]", re.IGNORECASE)
_REASONS_BY_TYPE: Sequence[tuple[type[Exception], str]] = (
    (SchemaMismatchError, "its columns are not those that Penstock writes, because another program changed them"),
    (DeltaProtocolError, "it needs a feature of Delta that deltalake does not support"),
    (CommitFailedError, "another writer was first"),
    (pa.ArrowException, "a data file is damaged, and `penstock verify` names it"),
)


def is_refusal(error: Exception) -> bool:
    """Whether the store or deltalake would give the same error again.

    Refusals are: missing rights, wrong credentials, a bucket that does not exist, and a request that the store does not
    take. A damaged data file is one, too, and a table that does not accept the columns or needs a feature of Delta that
    deltalake lacks. Everything else may pass: no answer, status 429 or 5xx, a full disk.
    """
    if isinstance(error, _REFUSAL_TYPES):
        return True
    text = _plain(error)
    return any(re.search(pattern, text, re.DOTALL) for pattern, _ in _REFUSALS)


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that the disk is full, or is the consequence of one that does.

    Then the write that failed did not land, and will not land later.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False


def reason_of(error: Exception) -> str:
    """The reason why the store or deltalake failed, in our words: their messages can be long dumps (fault U11).

    The reason names the address of the store, but never the query of a URL, which can contain a signature.
    """
    if isinstance(error, LocatedError):
        return error.reason
    text = _plain(error)
    path = _PATH.search(text)
    place = f"{path[1]}: " if path else ""
    if isinstance(error, OSError) and error.errno:
        return place + system_reason(error)
    for kind, reason in _REASONS_BY_TYPE:
        if isinstance(error, kind):
            return reason
    for pattern, reason in (*_REFUSALS, *_TEMPORARY):
        match = re.search(pattern, text, re.DOTALL)
        if match:
            return _with_endpoint(reason.format(*filter(None, match.groups())), text)
    number = _SYSTEM_ERROR.search(text)
    if number:
        return place + system_reason(OSError(int(number[1] or number[2]), ""))
    return "`penstock --debug` with the same command shows the reason"


def _plain(error: Exception) -> str:
    """The message without colours and arrows."""
    return _DECORATION.sub("", str(error))


def _with_endpoint(reason: str, text: str) -> str:
    """The reason with the address of the store, if the message has it."""
    endpoint = _ENDPOINT.search(text)
    return reason.replace("the store ", f"the store at {endpoint[1]} ", 1) if endpoint else reason
