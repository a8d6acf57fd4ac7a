"""What can go wrong with a run, in one or two lines."""


class RunError(Exception):
    """A run cannot start, go on or be read; the message says what to do."""
