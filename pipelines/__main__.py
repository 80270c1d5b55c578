"""The command `penstock` in a process of its own. `python -m pipelines` is the same where it is not on the path."""

from resources.machines import own_process


def run() -> None:
    """Run the command line."""
    own_process.begin()  # before the imports, which make most of the objects
    from pipelines.cli.main import main  # noqa: PLC0415 - see above

    try:
        main()
    finally:
        own_process.forget_interruptions()


if __name__ == "__main__":
    run()
