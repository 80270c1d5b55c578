"""The section `[lineage]`: where loads and other jobs send OpenLineage events."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from kafka_io.net.http_address import HttpAddress
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Tls
from resources.settings.section import Section, absolute_path


class LineageSettings(Section):
    """Where loads and other jobs send OpenLineage events. By default they send none. See docs/lineage.md."""

    url: str | None = None
    """URL that takes events, such as `http://marquez:5000/api/v1/lineage`. Redirects are not followed."""

    file: Annotated[str, BeforeValidator(absolute_path)] | None = None
    """File to which each event is added, as a line of JSON."""

    namespace: Annotated[str, Field(min_length=1)] = "penstock"
    """The namespace of the jobs."""

    token: SecretReference | None = None
    """Token or API key for `url`. It is read again for each event."""

    tls: Tls | None = None
    """A section for `https`: the authorities to trust, and a client certificate if the server requires one. By default
    the authorities of the operating system are trusted."""

    timeout_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 5.0
    """Seconds until the server must have answered. After a failure the run does not send anything more."""

    allow_secret_over_plaintext: bool = False
    """Allow a token with `http`, in a network that you trust."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.url is None:
            if self.token or self.tls:
                raise ValueError("`token` and `tls` belong to a `url`")
            return self
        address = HttpAddress.parse(self.url)
        address.check_tls(self.tls)
        if self.token is not None:
            address.check_secret(allow_over_plaintext=self.allow_secret_over_plaintext)
        return self

    @property
    def is_used(self) -> bool:
        """Whether events are sent at all."""
        return self.url is not None or self.file is not None
