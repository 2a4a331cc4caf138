"""Cases beside a pipeline: given files and rows, expected rows and changes, in steps. `errata test` and the plugin for pytest run them."""
