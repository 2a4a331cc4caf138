"""The typed tree that both backends read."""
