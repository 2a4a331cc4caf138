"""Input files: discovery, content, local copies; and the paths of output files."""
