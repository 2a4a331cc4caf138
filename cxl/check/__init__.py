"""The checker: from the syntax tree to the typed tree, with every error."""
