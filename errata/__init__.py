"""Errata: a changelog engine for data that gets corrected."""
