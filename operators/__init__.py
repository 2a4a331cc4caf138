"""The operators of a pipeline: one module or package for each node type.

Each declares the node's configuration, its checks and output row type, its class (linear, keyed or accumulating) and its delta rule.
`operators.core.registry` finds them; there is no list to edit.
"""
