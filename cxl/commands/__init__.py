"""The commands of `cxl`, one module each."""
