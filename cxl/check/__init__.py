"""From an untyped tree to a typed one: names, types, calls."""
