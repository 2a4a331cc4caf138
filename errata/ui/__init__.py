"""`errata ui`: the pages about a pipeline, served on this machine alone."""
