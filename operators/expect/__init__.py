"""Expectations of nodes: what their rows are to be, and the nodes of the plan that check it.

Three kinds of nodes are made for the expectations of a node. *Accepted* passes the rows on and rejects failing ones; *failing* has the rows that fail one
expectation; *measured* has a row while a figure of all rows (their number, the newest time) is not as expected.
"""
