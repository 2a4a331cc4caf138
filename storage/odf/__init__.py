"""Datasets of Open Data Fabric: their blocks, hashes, identities and data slices, and the directory that holds them.

    multiformats    hashes, identities and their texts
    buffers         tables of the published schema as flatbuffers
    layout          that schema, as far as datasets need it
    logical_hash    the hash of rows, whatever their file
    columns         the columns of a dataset as its schema and as Arrow's
    chain           blocks, from the head to the seed, checked
    slices          Parquet files of op rows
    live_rows       the rows that are live after all blocks, and the difference to others
    dataset         a directory that is written

A dataset is an append-only stream of op rows. Each block names the one before by its hash.
"""
