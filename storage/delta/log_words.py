"""The words that logs of Delta tables and Parquet files have by themselves, whatever rows they hold."""

from typing import Final

LOG_WORDS: Final = (
    "protocol", "metaData", "commitInfo", "remove", "checkpointMetadata", "sidecar", "domainMetadata", "minReaderVersion", "minWriterVersion", "readerFeatures",
    "writerFeatures", "name", "description", "format", "provider", "options", "schemaString", "partitionColumns", "configuration", "createdTime", "path", "partitionValues", "size",
    "modificationTime", "dataChange", "stats", "stats_parsed", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion", "clusteringProvider", "deletionTimestamp",
    "extendedFileMetadata", "appId", "version", "lastUpdated", "numRecords", "minValues", "maxValues", "nullCount", "tightBounds", "fields", "type", "nullable", "metadata", "struct",
    "elementType", "containsNull", "keyType", "valueType", "valueContainsNull", "timestamp", "operation", "operationParameters", "operationMetrics", "engineInfo", "clientVersion",
    "txnVersion", "delta-rs", "WRITE", "CREATE TABLE", "mode", "Append", "Overwrite", "ErrorIfExists", "location", "_delta_log", "part-00000.snappy.parquet", "checkpoint.parquet",
    "_last_checkpoint", "parquet", "snappy", "zstd", "json", "key_value", "element", "list", "item", "schema", "root", "spark_schema", "arrow_schema", "parquet-rs version",
    "org.apache.spark.version", "ARROW:schema", "timestampNtz", "appendOnly", "invariants", "checkConstraints", "columnMapping", "sizeInBytes", "numOfAddFiles", "v2Checkpoint",
    "storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality", "maxRowIndex", "minRowIndex", "predicate", "numRemovedFile", "numRestoredFile", "num_retries", "readVersion", "userMetadata", "partitionBy", "num_added_rows", "num_added_files",
    "num_removed_files", "num_partitions", "execution_time_ms", "delta.logRetentionDuration", "delta.deletedFileRetentionDuration", "delta.enableExpiredLogCleanup", "interval",
    "days", "hours", "true", "false", "null", "reader", "writer",
)  # fmt: skip
"""Members of the log's actions, their settings, and names of its files."""
