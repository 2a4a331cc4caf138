"""Input files and local copies of them."""
