#!/usr/bin/env python3
"""csv_oracle.py CSV_RECORDS: the splitter finds the records that Python's csv module finds, in files that it wrote."""
import csv
import io
import random
import subprocess
import sys

PARTS = ["a", "bc", "1.5", " ", "'", ",", ";", "\t", '"', "\n", "\r\n", "\u00e4", "\U0001f600", "-", '""']


def draw(rng, delimiter):
    """Rows as a program may write them. A row of one empty field is an empty line, which is no row."""
    rows = []
    for _ in range(rng.randrange(200)):
        row = ["".join(rng.choices(PARTS, k=rng.choice([0, 1, 2, 3, 20]))) for _ in range(rng.choice([1, 2, 3, 7]))]
        rows.append(row if row != [""] else ["x"])
    return rows


def main(tool):
    for seed in range(200):
        rng = random.Random(seed)
        delimiter = rng.choice(",;\t|")
        rows = draw(rng, delimiter)
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=delimiter, lineterminator=rng.choice(["\n", "\r\n"]),
                            quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
        writer.writerows(rows)
        text = out.getvalue()
        if rng.random() < 0.3:
            text = text.rstrip("\r\n")
        expected = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        got = subprocess.run([tool, delimiter], input=text.encode(), capture_output=True, check=True).stdout.decode()
        found = [[bytes.fromhex(field[1:]).decode() for field in line.split(" ")] for line in got.splitlines()]
        assert found == expected, f"seed {seed}: {found} != {expected}"
    print("200 files have the same records")


main(sys.argv[1])
