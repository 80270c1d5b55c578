"""`penstock completion`."""

import click
from click.shell_completion import get_completion_class

_PROGRAM = "penstock"
_VARIABLE = "_PENSTOCK_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print a script that makes a shell complete what is typed.

    It completes commands, options, and names of clusters and topics. Topics are those that have a table in a lake on
    this machine; brokers are not asked.

    \b
    Where to put it:
      bash  eval "$(penstock completion bash)" in ~/.bashrc
      zsh   eval "$(penstock completion zsh)" in ~/.zshrc, after compinit
      fish  penstock completion fish > ~/.config/fish/completions/penstock.fish

    \b
    Examples:
      penstock completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, _PROGRAM, _VARIABLE).source())
