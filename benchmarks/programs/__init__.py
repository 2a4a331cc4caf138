"""The programs that are measured, each called in a process of its own by `benchmarks.worker`.

A program is a function of a `Job`; it does its work and says after each part of it, by `job.lap(name)`, what part that was.
"""
