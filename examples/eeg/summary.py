"""Write the result of each bin as a row of a table."""
import argparse
import csv

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with np.load(args.group) as file, open(args.out, "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["bin", "accuracy", "t", "p", "significant"])
        for number, row in enumerate(zip(file["accuracy"], file["t"], file["p"], file["significant"]), 1):
            rows.writerow([number, f"{row[0]:.4f}", f"{row[1]:.3f}", f"{row[2]:.3g}", "yes" if row[3] else ""])


if __name__ == "__main__":
    main()
