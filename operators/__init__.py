"""The operators of a pipeline: one module a node type (user guide, node chapters; docs/architecture.md, "Operators").

Each module declares the node's configuration, its plan-time checks and output row type, its class (linear, keyed or
accumulating) and its delta rule. `operators.core.registry` finds them; there is no list to edit.
"""
