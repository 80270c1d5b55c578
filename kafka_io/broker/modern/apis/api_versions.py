"""ApiVersions: what this broker speaks (KIP-35)."""

from collections.abc import Mapping

from kafka_io.broker.modern.codes import Code
from kafka_io.messages.api_versions import ApiVersion, ApiVersionsResponse

Offered = Mapping[int, tuple[int, int]]


def api_versions(offered: Offered, code: Code = Code.NONE) -> ApiVersionsResponse:
    """The versions of each API by its number; with UNSUPPORTED_VERSION (35) for who asks in one that is unknown."""
    rows = (ApiVersion(api_key=key, min_version=first, max_version=last) for key, (first, last) in offered.items())
    return ApiVersionsResponse(error_code=code, api_keys=tuple(rows))
