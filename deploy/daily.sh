#!/bin/bash
# For cron: one run, its outcome in the log by exit code.
#   0 2 * * * /opt/errata/daily.sh /opt/pipelines/daily.yaml
#   0 * * * * errata metrics collect --spool-dir /var/spool/errata --output-file /var/log/errata/metrics.ndjson --delete-after-collect
set -uo pipefail

pipeline=${1:?usage: daily.sh PIPELINE}
spool=${ERRATA_METRICS_SPOOL_DIR:-/var/spool/errata}
log=${ERRATA_LOG:-/var/log/errata/daily.log}

errata run "$pipeline" --wait --log-level warn --metrics-spool-dir "$spool" 2>>"$log"
code=$?
case $code in
  0) outcome="success" ;;
  2) outcome="warning: records in the dead letter queue" ;;
  6) outcome="warning: another run holds the pipeline" ;;
  *) outcome="FAILURE (exit code $code)" ;;
esac
echo "$(date --iso-8601=seconds) $pipeline: $outcome" >>"$log"
exit $code
