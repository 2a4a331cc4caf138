"""Values that the whole application uses: diagnostics, failures, options, files."""
