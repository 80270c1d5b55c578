"""`penstock completion`, and the names that a shell completes: those in the settings, and topics from the lake.

Completion never uses the network, neither brokers nor an object store: a shell that waits for a network seems to hang.
Unknown names complete to nothing.
"""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from resources.settings.settings import Settings

_PROGRAM = "penstock"
_VARIABLE = "_PENSTOCK_COMPLETE"


@add_completion_class
class _Bash(BashComplete):
    """Completion in bash, which gives `--cluster=m` as three words, because it splits words at `=`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words of the command line without `=`, and the word that is completed."""
        words, prefix = super().get_completion_args()
        return [word for word in words if word != "="], prefix


class _WholeWords(ShellComplete):
    """Completion in shells that replace the whole word: in `--cluster=m` it also has the option."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The possible words, each with the option and `=` in front of its value."""
        option, equals, _ = incomplete.partition("=")
        prefix = option + equals if equals and option.startswith("-") else ""
        items = super().get_completions(args, incomplete)
        return [CompletionItem(prefix + item.value, item.type, item.help) for item in items]


@add_completion_class
class _Zsh(_WholeWords, ZshComplete):
    """Completion in zsh."""


@add_completion_class
class _Fish(_WholeWords, FishComplete):
    """Completion in fish."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print a script that enables completion in a shell.

    The shell then completes commands, options, and names of clusters, registries and topics. It knows the topics that
    have a table in a lake on this machine; it does not ask brokers.

    \b
    Where to put it:
      bash  eval "$(penstock completion bash)" in ~/.bashrc
      zsh   eval "$(penstock completion zsh)" in ~/.zshrc, after compinit
      fish  penstock completion fish > ~/.config/fish/completions/penstock.fish

    \b
    Examples:
      penstock completion bash
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def complete_clusters(ctx: click.Context, _parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """The clusters of the settings whose names begin with `prefix`."""
    return _matching(lambda: _settings(ctx).clusters, prefix)


def complete_registries(ctx: click.Context, _parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """The schema registries of the settings whose names begin with `prefix`."""
    return _matching(lambda: _settings(ctx).registries, prefix)


def complete_topics(ctx: click.Context, _parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """The topics that have a table in a local lake, of the cluster given with --cluster or of all clusters.

    Topics that are on the command line already are left out.
    """
    given = ctx.params.get("topics") or ()
    return _matching(lambda: set(_topics(_settings(ctx), ctx.params.get("cluster"))) - set(given), prefix)


def _matching(list_names: Callable[[], Iterable[str]], prefix: str) -> list[CompletionItem]:
    try:
        names = sorted(set(list_names()))
    except Exception:  # noqa: BLE001 - a shell that completes cannot show an error
        return []
    return [CompletionItem(name) for name in names if name.startswith(prefix) and name.isprintable()]


def _settings(ctx: click.Context) -> Settings:
    return Settings.load(ctx.find_root().params.get("settings_file"))


def _topics(settings: Settings, cluster: str | None) -> Iterable[str]:
    from resources.stores.lake import Lake

    if "://" in settings.lake:
        return ()
    lake = Lake.of(settings)
    return (topic for name in ([cluster] if cluster else settings.clusters) for topic in lake.topics(name))
