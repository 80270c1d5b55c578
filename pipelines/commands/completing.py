"""What the shell completes: names of clusters from the settings, names of topics from the lake.

No broker is asked, nor an object store: a shell that waits for a network hangs. What is not known completes to nothing.
"""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from resources.settings import Settings


def clusters(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Clusters of the settings."""
    return _matching(lambda: _settings(ctx).clusters, begun)


def topics(ctx: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Topics that have a table in a lake on this machine, of the cluster that is named, or of all."""
    return _matching(lambda: _topics(_settings(ctx), ctx.params.get("cluster")), begun)


def _matching(known: Callable[[], Iterable[str]], begun: str) -> list[CompletionItem]:
    try:
        names = sorted(set(known()))
    except Exception:  # noqa: BLE001 - a shell that completes has no place for what is wrong
        return []
    return [CompletionItem(name) for name in names if name.startswith(begun) and name.isprintable()]


def _settings(ctx: click.Context) -> Settings:
    return Settings.load(ctx.find_root().params.get("settings_file"))


def _topics(settings: Settings, cluster: str | None) -> Iterable[str]:
    from resources.lake import Lake

    if "://" in settings.lake:
        return ()
    lake = Lake.of(settings)
    return (topic for name in ([cluster] if cluster else settings.clusters) for topic in lake.topics(name))
