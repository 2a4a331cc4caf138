"""Projects to start from: the example of the tutorial, and pipelines guessed from data."""
