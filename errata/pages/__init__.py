"""Pages about a pipeline and its state: views of plain values, and templates that make HTML of them. `errata ui` serves them, `errata report` puts them into one file."""
