"""From YAML files to a checked pipeline document."""
