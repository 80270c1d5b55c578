"""Mutants that behave like the original, each with the reason: no test can notice them."""

from collections.abc import Mapping

EQUIVALENT: Mapping[tuple[str, str, str], str] = {}
"""The reason by file, function and change of the mutant."""
