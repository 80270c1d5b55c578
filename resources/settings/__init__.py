"""The settings file: its sections, and how it is read, shown and documented."""
