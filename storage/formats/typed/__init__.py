"""What Parquet, Arrow and Delta share: columns that have types of their own."""
