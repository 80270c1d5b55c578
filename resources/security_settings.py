"""`[clusters.<name>.security]` in the settings file: TLS and SASL as kafka_io.net.security defines and checks them."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

from kafka_io.net.secret import SecretReference
from kafka_io.net.security import FILE, Sasl, Security, Tls

_REFERENCE = SecretReference | None
FOLDER = "folder"  # the key of the settings file's folder in the context of a validation
# What precedes the path in the value of a key.
_PREFIXES = {
    **{field.name: "" for field in fields(Tls) if field.metadata == FILE},
    **{field.name: "file:" for section in (Tls, Sasl) for field in fields(section) if field.type == _REFERENCE},
}


def _security(value: Any, info: ValidationInfo) -> Any:
    """The section with absolute paths. `tls = true` becomes an empty section, `tls = false` none."""
    if not isinstance(value, dict):
        return value
    tls = value.get("tls")
    sections = {**value, "tls": ({} if tls else None) if isinstance(tls, bool) else tls}
    folder = Path((info.context or {}).get(FOLDER, ""))
    return {name: _with_absolute_paths(section, folder) for name, section in sections.items()}


def _with_absolute_paths(section: Any, folder: Path) -> Any:
    if not isinstance(section, dict):
        return section
    return {key: _absolute(text, _PREFIXES.get(key), folder) for key, text in section.items()}


def _absolute(text: Any, prefix: str | None, folder: Path) -> Any:
    """A value with an absolute path after `prefix`. Values without a path are not changed."""
    if prefix is None or not isinstance(text, str) or not text.startswith(prefix) or text == prefix:
        return text
    # Symbolic links stay unresolved: mounted secrets are links that are redirected when the secret is renewed.
    return f"{prefix}{(folder / Path(text.removeprefix(prefix)).expanduser()).absolute()}"


SecuritySettings = Annotated[Security, BeforeValidator(_security)]
