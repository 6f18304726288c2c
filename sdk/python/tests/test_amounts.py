"""Amounts: the table that the command line, the dashboard and the other clients play."""

import json
import os
import random
import unittest

import quorate

UNITS = {"bytes": quorate.in_bytes, "milli": quorate.in_milli, "count": quorate.in_count, "items": quorate.in_count,
         "unspecified": quorate.in_count}
TABLE = os.path.join(os.path.dirname(__file__), "..", "..", "..", "client", "quantity", "testdata", "quantities.json")


class Amounts(unittest.TestCase):
    def test_the_table_of_amounts(self) -> None:
        with open(TABLE, encoding="utf-8") as file:
            rows = json.load(file)
        self.assertGreater(len(rows), 80)
        for row in rows:
            with self.subTest(row=row):
                read = UNITS[row["unit"]]
                if "refused" in row:
                    self.assertRaises(ValueError, read, row["text"])
                else:
                    self.assertEqual(read(row["text"]), int(row["amount"]))

    def test_what_is_written_is_read(self) -> None:
        for amount, text in ((0, "0"), (250 * 10**9, "250G"), (16 * 2**30, "16Gi"), (3 * 2**29, "1536Mi"), (1000, "1k")):
            self.assertEqual(quorate.bytes_text(amount), text)
        self.assertEqual([quorate.milli_text(n) for n in (500, 2000, 2500)], ["500m", "2", "2500m"])
        for _ in range(1000):
            amount = random.randrange(2 ** random.randrange(1, 62)) * random.choice((1, 1000, 2**10)) % 2**62
            self.assertEqual(quorate.in_bytes(quorate.bytes_text(amount)), amount)
            self.assertEqual(quorate.in_milli(quorate.milli_text(amount)), amount)


if __name__ == "__main__":
    unittest.main()
