"""`python -m punctual`: the command line."""

from punctual.cli import main

main()
