"""A check of a pipeline must not load the libraries for reading and writing."""

import subprocess
import sys

PROGRAM = """
import sys
from storage import formats
from storage.files import discovery, path_tokens
from storage.formats import Column, ReadPlan, WritePlan, envelope, splitting
layout = {"fields": [{"name": "a", "start": 0, "width": 1}]}
for name in formats.names():
    formats.reader(name, {}, ReadPlan((Column("a"),), layout=layout if name == "fixed_width" else None))
    formats.writer_type(name)
discovery.FileQuery(glob="*.csv", regex=None).check()
print([name for name in ("pyarrow", "polars", "numpy", "pandas", "pyspark") if name in sys.modules])
"""


def test_checking_options_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
