"""The difference between two versions of a source."""
