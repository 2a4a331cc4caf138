"""Records of a REST service, fetched page by page."""
