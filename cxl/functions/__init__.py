"""The builtins: each module registers entries, `cxl.functions.registry` finds them."""
