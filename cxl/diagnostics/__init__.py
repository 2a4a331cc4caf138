"""Diagnostics of the language, and places in its texts."""
