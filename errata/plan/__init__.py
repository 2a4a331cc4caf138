"""From a pipeline document to bound nodes and the steps of a run."""
