"""What goes wrong with data, said in one line."""


class DataError(Exception):
    """Names the file, what was expected of it, and the command that mends it."""
