"""The command `shiftsort`. One file here for each group of commands."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from .app import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich", "numpy"):
            raise
        sys.exit(
            f"shiftsort: the command needs the package {missing.name!r}; "
            "install it with: pip install 'shiftsort[train]'"
        )
    app()
