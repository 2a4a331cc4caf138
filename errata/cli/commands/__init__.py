"""One module for each command. Its `command` is a click command that returns the exit code."""
