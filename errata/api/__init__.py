"""The Python interface: `load` and the loaded pipeline."""
