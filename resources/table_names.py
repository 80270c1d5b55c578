"""The names of tables: that of the topic, and behind it a slash and a route if the topic has several tables.

No topic has a slash in its name, so `events/orders` is a table of the topic `events` and of no other one.
"""

import re

SEPARATOR = "/"
"""The character between the topic and the route."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


def topic_of(name: str) -> str:
    """The topic of a table with this name.

    >>> topic_of("events/orders"), topic_of("events")
    ('events', 'events')
    """
    return name.partition(SEPARATOR)[0]


def route_of(name: str) -> str:
    """The route of a table with this name; empty for the topic's own table.

    >>> route_of("events/orders"), route_of("events")
    ('orders', '')
    """
    return name.partition(SEPARATOR)[2]


def table_name(topic: str, route: str) -> str:
    """The name of the table for the records of a route; without a route it is the topic's own table.

    >>> table_name("events", "orders"), table_name("events", "")
    ('events/orders', 'events')
    """
    return f"{topic}{SEPARATOR}{route}" if route else topic


def names_topic(section: str, topic: str) -> bool:
    """Whether the NAME of a section `[topics.NAME]` matches a topic: as a name, or as a regular expression.

    >>> names_topic("web.clicks", "web.clicks"), names_topic("web.clicks", "webxclicks"), names_topic("web.*", "webx")
    (True, False, True)
    """
    if _PLAIN_NAME.fullmatch(section):
        return section == topic
    return re.fullmatch(section, topic, re.DOTALL) is not None
