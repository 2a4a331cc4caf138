"""TPC-H: each query as a pipeline (`qNN.yaml`) and as the specification's SQL (`qNN.sql`), with all columns of the order that ties leave open."""
