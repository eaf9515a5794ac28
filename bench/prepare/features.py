"""features.py FOLDER ROWS: a table with 20 numbers and a label, as rows.parquet, x.npy and y.npy."""
import pathlib
import sys

import duckdb
import numpy as np


def main(folder, rows):
    folder, rng = pathlib.Path(folder), np.random.default_rng(1)
    x = rng.standard_normal((rows, 20), np.float32)
    y = rng.integers(0, 2, rows)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    table = {f"f{n:02}": np.ascontiguousarray(column) for n, column in enumerate(x.T)} | {"label": y}
    tables = duckdb.connect()
    tables.register("rows", table)
    tables.execute(f"COPY rows TO '{folder / 'rows.parquet'}' (FORMAT parquet, COMPRESSION zstd)")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
