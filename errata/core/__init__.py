"""What the whole application uses: diagnostics, failures, options, files."""
