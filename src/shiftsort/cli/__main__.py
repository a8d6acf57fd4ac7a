"""`python -m shiftsort.cli`: the command where the package is not installed."""

from . import main

main()
