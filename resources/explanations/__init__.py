"""What each error means: its code, why it happens, what to do, and the exit code of a command that ends with it."""
