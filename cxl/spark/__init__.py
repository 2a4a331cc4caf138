"""CXL on Spark: typed programs as columns, through the Spark Connect surface only (DESIGN sections 4 and 7).

`apply` runs a row program on a frame, `column` gives a single expression, `errors` says what is wrong with rows that failed; `evaluate_cases` asks many
small programs at once.
"""

from cxl.spark.cases import evaluate_cases
from cxl.spark.context import Context
from cxl.spark.program import FAILED, INDEX, PASS, Applied, DistinctKey, apply, column, errors

__all__ = ["FAILED", "INDEX", "PASS", "Applied", "Context", "DistinctKey", "apply", "column", "errors", "evaluate_cases"]
