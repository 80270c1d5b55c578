"""`penstock config`: test the settings file, show its values, print the settings reference."""

import json
from collections.abc import Iterator

import click

from pipelines.cli.options import GlobalOptions
from pipelines.cli.output import console, terminal
from pipelines.cli.output.result import ends_of, json_option, print_json, quiet_option
from resources.explanations.codes import combined
from resources.printed import printed
from resources.settings.settings import Settings, SettingsError


@click.group("config")
def config_group() -> None:
    """Test and show the settings, and print their reference.

    \b
    Examples:
      penstock config check
      penstock config show
    """


@config_group.command("check")
@click.option("--offline", is_flag=True, help="Test only the file, not the brokers, the registries, the lake or Java.")
@json_option
@quiet_option
@click.pass_context
def check_command(ctx: click.Context, offline: bool, as_json: bool, quiet: bool) -> None:
    """Test the settings file and what it names. Exit code 1 to 6: a test failed.

    The command tests the file, the Dagster definitions made from it, Spark, Java, Dagster's storage, free space,
    clocks, the secrets, the lake (also whether it refuses to create an object twice), each schema registry, and each
    cluster: whether all brokers answer, their release, the rights of the client, and how many topics belong to each
    schedule. For each problem it says how to repair it. It reads secrets but never shows them.

    \b
    Examples:
      penstock config check
      penstock config check --offline
      penstock config check --json
    """
    from pipelines.cli.config_tests import config as config_check
    from pipelines.cli.config_tests.result import CheckResult, failed, passed

    def check() -> Iterator[CheckResult]:
        try:
            settings = ctx.obj.settings()
        except SettingsError as error:
            yield failed("settings", error)
            return
        yield passed("settings", str(Settings.path(ctx.obj.settings_file)))
        yield from config_check.check_file(settings)
        if not offline:
            yield from config_check.check_environment(settings)

    results = []
    with terminal.quieted(quiet=quiet):
        for result in map(printed, check()):
            results.append(result)
            if not as_json:
                with terminal.reader_may_leave():
                    console.check_result(result)
    exit_code = combined(ends_of(results))
    if as_json:
        with terminal.reader_may_leave():
            print_json(exit_code, results)
    ctx.exit(exit_code)


@config_group.command("show")
@json_option
@click.pass_obj
def show_command(options: GlobalOptions, as_json: bool) -> None:
    """Print the values of all settings, with the defaults.

    Each line is a setting in TOML. A secret is shown by the name of its variable or file. Options of the lake and of
    Spark that look like a secret are shown as ***.

    \b
    Examples:
      penstock config show
      penstock config show --json
    """
    from resources.settings.settings_shown import as_toml, shown

    settings = shown(options.settings())
    with terminal.reader_may_leave():
        if as_json:
            print_json(0, [settings])
        else:
            click.echo(as_toml(settings), nl=False)


@config_group.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of --json.

    It describes the object that every command prints with --json. docs/json.md explains it.

    \b
    Examples:
      penstock config schema
    """
    from pipelines.cli.output_schema import schema

    with terminal.reader_may_leave():
        click.echo(json.dumps(schema(), indent=2))


@config_group.command("reference")
def reference_command() -> None:
    """Print the settings reference in Markdown.

    It lists each key with type, default and meaning, and ends with an example that sets every key.

    \b
    Examples:
      penstock config reference
    """
    from resources.settings.settings import Settings
    from resources.settings.settings_reference import reference

    with terminal.reader_may_leave():
        click.echo(reference(Settings), nl=False)
