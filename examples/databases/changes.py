"""Make the shop's table of change records, or with `later` write more of them: late ones, one that is repeated, and one in place of a wrong one."""

import sqlite3
import sys

MADE = "CREATE TABLE price_changes (article TEXT, version INTEGER, code TEXT, price TEXT); INSERT INTO price_changes VALUES ('pen', 1, 'N', '2.00'), ('ink', 4, 'C', '7.50'), ('pad', 2, 'X', NULL);"
LATER = """
INSERT INTO price_changes VALUES ('ink', 1, 'N', '7.00'), ('pad', 1, 'N', '3.00'), ('cap', 1, 'N', '0.50'), ('cap', 1, 'N', '0.50');
UPDATE price_changes SET price = '2.20' WHERE article = 'pen';
"""

with sqlite3.connect("examples/databases/shop.db") as shop:
    shop.executescript(LATER if sys.argv[1:] == ["later"] else MADE)
