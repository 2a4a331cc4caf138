"""Sources that read a REST service page by page."""
