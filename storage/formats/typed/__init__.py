"""The common part of Parquet, Arrow and Delta: columns that have types of their own."""
