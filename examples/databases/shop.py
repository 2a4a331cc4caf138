"""Make the shop's database, or with `later` what became of it; with `report` print what the pipeline wrote."""

import sqlite3
import sys

MADE = "CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT, amount TEXT); INSERT INTO orders VALUES (1, 'north', '10.50'), (2, 'south', '20'), (3, 'north', '30');"
LATER = "UPDATE orders SET amount = '25' WHERE id = 2; DELETE FROM orders WHERE id = 3; INSERT INTO orders VALUES (4, 'west', '7.25');"

with sqlite3.connect("examples/databases/shop.db") as shop:
    if sys.argv[1:] == ["report"]:
        for row in shop.execute("SELECT region, total, orders FROM report ORDER BY region"):
            print(*row)
    else:
        shop.executescript(LATER if sys.argv[1:] == ["later"] else MADE)
