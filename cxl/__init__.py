"""CXL: the typed expression language of Errata (user guide, CXL chapters).

`compile_program` turns text into a `Program`; `cxl.interpret` runs it on records, `cxl.spark` turns it into Spark columns.
"""
