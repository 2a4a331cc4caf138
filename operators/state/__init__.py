"""State nodes: records pass unchanged and write scoped variables."""
