"""How files become deltas of a source: which files changed, reading them, and what is new in them (DESIGN sections 5 and 6)."""
