"""Settings that choose the topics to load, and the section that applies to a topic."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationInfo

from resources.settings.schedules import Patterns, matches
from resources.settings.section import Section, taken
from resources.settings.topic_audit import counts_problem
from resources.settings.topic_formats import check_name
from resources.settings.topic_options import DEFAULT_TOPIC, TopicOptions, parts_of_topic
from resources.table_names import names_topic, topic_of


class TopicRules(Section):
    """The topics to load: those whose name matches an `allow` pattern and no `deny` pattern."""

    allow: Patterns = (".*",)
    """Regular expressions that match whole topic names. An empty expression matches nothing."""

    deny: Patterns = ()
    """Regular expressions for topics that are not loaded, even if an `allow` pattern matches them."""

    def allows(self, topic: str) -> bool:
        """Whether `topic`, or the topic of a table, is loaded. A `deny` pattern overrides `allow` patterns."""
        name = topic_of(topic)
        return matches(self.allow, name) and not matches(self.deny, name)


class TopicSections(BaseModel, frozen=True):
    """The topics to load: those whose name matches an `allow` pattern and no `deny` pattern.

    The sections `[topics.NAME]` contain the formats of topics, and how they appear in Dagster.
    """

    rules: TopicRules = TopicRules()

    sections: dict[str, TopicOptions] = Field(default={})
    """The settings of topics, by the names of their sections, in the order of the file."""

    def section_of(self, topic: str) -> TopicOptions:
        """The settings of a topic: those of the first section that matches it, otherwise the defaults.

        A table such as `events/orders` has the settings of its topic without `state`, unless a section names it with
        its slash.
        """
        section = self._first(topic)
        holds_counts = any(audited.audit.audit == topic for audited in self.sections.values())
        return section.for_counts() if holds_counts else section

    def _first(self, topic: str) -> TopicOptions:
        sections, name = self.sections.items(), topic_of(topic)
        of_topic = next((options for own, options in sections if names_topic(own, name)), DEFAULT_TOPIC)
        inherited = of_topic.model_copy(update={"tables": None, "state": None})
        of_table = (options for own, options in sections if "/" in own and names_topic(own, topic))
        options = of_topic if name == topic else next(of_table, inherited)
        return options.for_all_messages() if of_topic.tables and of_topic.tables.by_schema else options

    def audit_problem(self, name: str, rules: Iterable[TopicRules]) -> str | None:
        """The key `audit`, and why the counts that it names cannot be loaded with the topics; None if they can.

        Args:
            name: the name of the section.
            rules: the rules of each cluster.
        """
        counts = self.sections[name].audit.audit
        if counts is None:
            return None
        if counts == name:
            return "audit: a topic cannot hold the counts of its own records"
        problem = counts_problem(self._first(counts).format)
        if problem:
            return f"audit: the topic {counts!r} cannot hold counts: {problem}"
        loading = [rule for rule in rules if rule.allows(name)]
        if loading and not any(rule.allows(counts) for rule in loading):
            return f"audit: the settings do not allow the topic {counts!r}; change `allow` or `deny` of [topics]"
        return None


_SECTIONS = TypeAdapter(dict[str, Annotated[TopicOptions, BeforeValidator(parts_of_topic)]])


def topics_of_file(section: Any, info: ValidationInfo) -> Any:
    """The parts of the section `[topics]`: its rules, and the sections `[topics.NAME]`."""
    if not isinstance(section, dict):
        return section
    sections = dict(section)
    rules = TopicRules.model_validate(taken(sections, TopicRules))
    for name in sections:
        check_name(name)
    options = _SECTIONS.validate_python(sections, context=info.context)
    if several := [name for name, own in options.items() if "/" in name and own.tables]:
        raise ValueError(f"{several[0]}.tables: only a topic has several tables, and this section is about one of them")
    return TopicSections(rules=rules, sections=options)
