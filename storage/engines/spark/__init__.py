"""Apache Spark: in a JVM beside this process, or in sessions that others started."""
