"""Answers to an editor about a pipeline file that is being written: functions over texts that need no engine and change no file.

`analysis` checks a text as `errata check` does; the other modules answer from what it found. `server` speaks the protocol.
"""
