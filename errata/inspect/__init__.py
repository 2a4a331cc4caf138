"""Commands that look at committed epochs."""
