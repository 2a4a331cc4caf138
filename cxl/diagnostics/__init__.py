"""Diagnostics of the language and their codes."""
