"""Output nodes: which columns are written, under which names, in which order."""
