"""Values of files as declared types."""
