"""Commands of `penstock`, one file each; cli.py puts them into its group."""
