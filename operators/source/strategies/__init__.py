"""Merge strategies, one a module."""
