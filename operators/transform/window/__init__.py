"""Analytic windows: `$window` functions over the rows of a partition."""
