"""How fast Errata is, as ratios to programs of the same work: `make bench`, results in README.md beside this file."""
