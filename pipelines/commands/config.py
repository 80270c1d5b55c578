"""`penstock config`: what the settings file says, what it means, and what could stand in it."""

from collections.abc import Iterator

import click

from pipelines import console
from pipelines.commands.parts import FAILED, Options, json_option, print_json
from resources.settings import SettingsError


@click.group("config")
def config_group() -> None:
    """Check and show the settings, and explain what can be set.

    \b
    Examples:
      penstock config check
      penstock config show
    """


@config_group.command("check")
@click.option("--offline", is_flag=True, help="Look at the file only; ask no broker, no lake and no machine.")
@json_option
@click.pass_context
def check_command(ctx: click.Context, offline: bool, as_json: bool) -> None:
    """Say what the settings mean, and whether what they name is there. Exit code 1: something is wrong.

    It looks at the file; at what Dagster makes of it; at Java, secrets and the lake; and at each cluster: whether its
    brokers answer, what they speak, and which topics each group takes. Secrets are read, and never shown.

    \b
    Examples:
      penstock config check
      penstock config check --offline
      penstock config check --json
    """
    from pipelines.commands import checking

    def found() -> Iterator[checking.Finding]:
        try:
            settings = ctx.obj.settings()
        except SettingsError as error:
            yield checking.Finding(what="settings", ok=False, told=str(error))
            return
        yield checking.Finding(what="settings", ok=True, told=str(ctx.obj.settings_path))
        yield from checking.of_file(settings)
        if not offline:
            yield from checking.of_what_is_there(settings)

    findings = []
    for one in found():
        findings.append(one)
        if not as_json:
            console.finding(one)
    if as_json:
        print_json([one.as_dict() for one in findings])
    ctx.exit(0 if all(one.ok for one in findings) else FAILED)


@config_group.command("show")
@json_option
@click.pass_obj
def show_command(options: Options, as_json: bool) -> None:
    """Print all settings that hold, defaults too.

    Each is a line of TOML. Secrets stand there as they are named, and what looks like one in an option of the lake or
    of Spark is ***.

    \b
    Examples:
      penstock config show
      penstock config show --json
    """
    from resources.settings_shown import as_toml, shown

    settings = shown(options.settings())
    if as_json:
        print_json([settings])
    else:
        click.echo(as_toml(settings), nl=False)


@config_group.command("reference")
def reference_command() -> None:
    """Print what can be set, in Markdown.

    Each key with its type, its default and its meaning, and an example that sets all of them.

    \b
    Examples:
      penstock config reference
    """
    from resources.settings_reference import reference

    click.echo(reference(), nl=False)
