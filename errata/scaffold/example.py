"""`errata init`: a small project that runs, shows a rejected record, and is ready for a correction."""

from collections.abc import Iterator
from pathlib import Path

from errata.core.failures import StorageFailed
from errata.core.files import replace_file

_FILES = {
    "pipeline.yaml": """\
# Orders by region. Try:
#   errata run pipeline.yaml        the first time everything
#   errata log pipeline.yaml totals
# Then change an amount in data/orders.csv and run again: only what changed moves.
pipeline:
  name: orders_by_region

nodes:
  - type: source
    name: orders
    config:
      name: orders
      type: csv
      path: data/orders.csv
      merge: {strategy: snapshot, primary_key: [order_id]}
      schema:
        - {name: order_id, type: int}
        - {name: region, type: string}
        - {name: amount, type: float}
        - {name: ordered_on, type: date}

  - type: transform
    name: valid
    input: orders
    config:
      cxl: |
        filter amount > 0
        emit region = region.upper()
        emit month = ordered_on.format_date("%Y-%m")

  - type: aggregate
    name: totals
    input: valid
    config:
      group_by: [region, month]
      cxl: |
        emit orders = count(*)
        emit total = sum(amount)

  - type: output
    name: report
    input: totals
    config:
      name: report
      type: csv
      path: out/totals.csv

error_handling:
  strategy: continue
  dlq:
    path: out/rejected.csv
""",
    "data/orders.csv": """\
order_id,region,amount,ordered_on
1001,eu,120.50,2026-01-04
1002,us,80.00,2026-01-05
1003,eu,42.25,2026-01-09
1004,us,not known,2026-01-11
1005,apac,310.00,2026-02-02
1006,eu,15.75,2026-02-03
""",
    "errata.toml": """\
# The workspace: `errata` looks for this file at or above a pipeline's folder.
# [state]
# path = "s3://bucket/errata"
# [engine]
# name = "auto" # by the work of a run; or "sail", "spark"
""",
    ".gitignore": ".errata/\nout/\n",
    "README.md": """\
# Orders by region

A pipeline of Errata, made by `errata init`. `pipeline.yaml` reads `data/orders.csv` and writes `out/totals.csv`. Three commands show what it does:

```sh
errata run pipeline.yaml
errata correct pipeline.yaml orders --key order_id=1003 --set amount=45.25 --reason "wrong price"
errata why pipeline.yaml totals region=EU month=2026-01
```

The first one writes the totals. One order has no number as its amount: `errata dlq pipeline.yaml` shows it. The second one corrects an order and shows which totals
follow; editing the file and running again does the same. The third one names the orders behind a total.
""",
}


def make_project(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Write the files of the project and yield their paths. Raises StorageFailed where one exists, before anything is written."""
    existing = [name for name in _FILES if (folder / name).exists()]
    if existing and not force:
        raise StorageFailed(f"{folder / existing[0]} exists", help="choose another folder, or replace files with --force")
    for name, text in _FILES.items():
        replace_file(folder / name, text)
        yield folder / name
