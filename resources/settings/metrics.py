"""The section `[metrics]`: where each load writes its own metrics, for Prometheus."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from resources.settings.section import Section, absolute_path

_SCHEMES = ("http", "https")


def check_push_url(url: str) -> str:
    """The URL of a Pushgateway. It has no password, because settings contain no secrets (fault X01).

    Raises:
        ValueError: it is no such URL.
    """
    try:
        parts = urlsplit(url)
        has_host, has_user = bool(parts.hostname), parts.username is not None
        _ = parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in _SCHEMES or not has_host:
        raise ValueError("must be a URL such as http://pushgateway:9091")
    if has_user:
        raise ValueError("must not contain a user or a password")
    if parts.query or parts.fragment:
        raise ValueError("must not contain ? or #")
    return url


class MetricsSettings(Section):
    """Where each load writes its own metrics. `penstock metrics` needs none of these settings."""

    push_url: Annotated[str, AfterValidator(check_push_url)] | None = None
    """URL of a Prometheus Pushgateway. Each load sends the metrics of each topic to it. By default no load does."""

    push_timeout_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 5.0
    """Seconds until the Pushgateway must have answered. After a failure the run does not send anything more."""

    textfile_folder: Annotated[str, BeforeValidator(absolute_path)] | None = None
    """Folder of node_exporter's textfile collector. Each load replaces a file per topic in it, `penstock_load_*.prom`.
    By default no load does."""

    @property
    def is_used(self) -> bool:
        """Whether loads write metrics at all."""
        return self.push_url is not None or self.textfile_folder is not None
