"""Output files and tables."""
