"""Settings that choose the topics to load, and the section that applies to a topic."""

from collections.abc import Iterable, Mapping
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from resources.settings.groups import Patterns, matches
from resources.settings.section import Section
from resources.settings.topic_formats import checked_name, names_topic
from resources.settings.topic_options import DEFAULT_TOPIC, TopicOptions


class TopicRules(Section):
    """The topics to load: those whose name matches an `allow` pattern and no `deny` pattern."""

    allow: Patterns = (".*",)
    """Regular expressions that match whole topic names. An empty expression matches nothing."""

    deny: Patterns = ()
    """Regular expressions for topics that are not loaded, even if an `allow` pattern matches them."""

    def allows(self, topic: str) -> bool:
        """Whether `topic` is loaded. A `deny` pattern overrides `allow` patterns."""
        return matches(self.allow, topic) and not matches(self.deny, topic)


class TopicSections(TopicRules):
    """The topics to load: those whose name matches an `allow` pattern and no `deny` pattern.

    The sections `[topics.NAME]` contain the formats of topics, and how they appear in Dagster.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, TopicOptions] = Field(init=False)

    @model_validator(mode="after")
    def _has_topic_names(self) -> Self:
        for name in self.formats:
            checked_name(name)
        return self

    @property
    def formats(self) -> Mapping[str, TopicOptions]:
        """The settings of topics, by the names of their sections, in the order of the file."""
        return self.__pydantic_extra__

    def section_of(self, topic: str) -> TopicOptions:
        """The settings of a topic: those of the first section that matches it, otherwise the defaults."""
        section = self._first(topic)
        holds_counts = any(audited.audit == topic for audited in self.formats.values())
        return section.for_counts() if holds_counts else section

    def _first(self, topic: str) -> TopicOptions:
        formats = self.formats.items()
        return next((format_ for name, format_ in formats if names_topic(name, topic)), DEFAULT_TOPIC)

    def audit_problem(self, name: str, rules: Iterable[TopicRules]) -> str | None:
        """Why the counts that a section names cannot be loaded with its topics; None if they can.

        Args:
            name: the name of the section.
            rules: the rules of each cluster.
        """
        counts = self.formats[name].audit
        if counts is None:
            return None
        if counts == name:
            return "a topic cannot hold the counts of its own records"
        problem = self._first(counts).counts_problem()
        if problem:
            return f"the topic {counts!r} cannot hold counts: {problem}"
        loading = [rule for rule in rules if rule.allows(name)]
        if loading and not any(rule.allows(counts) for rule in loading):
            return f"the settings do not allow the topic {counts!r}; change `allow` or `deny` of [topics]"
        return None
