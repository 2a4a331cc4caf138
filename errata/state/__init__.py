"""The content of a pipeline's state, as rows."""
