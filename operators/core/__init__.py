"""The parts that all node types share: operators, deltas, row types, evaluation, binding."""
