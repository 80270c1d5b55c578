"""`python -m pipelines` is `penstock`, where the installed command is not on the path."""

from pipelines.cli.main import main

main()
