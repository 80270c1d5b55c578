"""Commands of `penstock`, one file each; main.py puts them into its group."""
