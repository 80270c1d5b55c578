"""The error of a simulation whose table breaks a law."""


class Broken(Exception):
    """The table is wrong, or the report of a run does not match the table."""


def require(condition: bool, message: str) -> None:
    """Check one condition of a law.

    Raises:
        Broken: it does not hold.
    """
    if not condition:
        raise Broken(message)
