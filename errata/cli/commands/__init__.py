"""One module a command; each has the click command `command`, whose function returns the exit code."""
