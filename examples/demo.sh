#!/usr/bin/env bash
# Run examples/orders, correct its input, run it again, and show what became of the correction; then, where Java is, run it on Apache Spark
# and compare the outputs. `make demo` calls it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$(dirname "$0")/orders/." "$work"
cd "$work"

say() { printf '\n# %s\n' "$1"; }
show() {
  printf '$ %s\n' "$*"
  "$@"
}

say "Six orders, one of them cancelled: what is each region's revenue?"
show cat data/orders.csv
show errata run pipeline.yaml
show cat out/revenue.csv

say "The file is corrected: the price of A2 was wrong, A4 is cancelled after all, A7 is new."
show diff data/orders.csv corrected/orders.csv || true
cp corrected/orders.csv data/orders.csv
show errata run pipeline.yaml
show cat out/revenue.csv

say "What the second run did, and why: the changelog of two nodes. Every row that is taken back says so."
show errata log pipeline.yaml orders --epoch 2
show errata log pipeline.yaml revenue --epoch 2
show errata log pipeline.yaml

say "Nothing has changed now, so nothing is done."
show errata run pipeline.yaml

if python -c 'import sys; from storage.engines.spark.java import find_java; sys.exit(find_java() is None)'; then
  say "The same pipeline on Apache Spark, from nothing. A JVM starts, which takes a while; the output is the same, byte for byte."
  mv out on-sail
  show errata run pipeline.yaml --engine spark --full-refresh
  show cmp on-sail/revenue.csv out/revenue.csv
else
  printf '\nNo Java 17 or later was found, so the same on Apache Spark is left out.\n'
fi
