"""The definitions of the project; each module and each `defs.yaml` in this folder adds some."""
