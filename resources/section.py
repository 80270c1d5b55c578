"""The base class of all sections of the settings file."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings file. Unknown keys are errors; error messages do not repeat values (fault X01).

    The docstring below a field is its text in docs/settings.md.
    """

    # A value may be a secret, so pydantic must not print it in its errors.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True)
