"""Aggregate nodes."""
