"""`python -m cxl`."""

from cxl.cli import run

run()
