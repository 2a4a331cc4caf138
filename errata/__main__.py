"""`python -m errata`."""

from errata.cli import run

run()
