"""A run: sources read, nodes computed, one epoch committed."""
