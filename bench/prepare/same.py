"""same.py ONE OTHER: are two tables `joined` the same? Prints JSON: rows of each, and rows that only one of them has."""
import json
import pathlib
import sys

import duckdb

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "peers"))
from columns import COLUMNS, WHOLE  # noqa: E402

KINDS = {**dict.fromkeys(["event", "user", *WHOLE], "BIGINT"), "ts": "TIMESTAMP",
         **dict.fromkeys(["price", "price_level", "degrees", "budget"], "DOUBLE")}


def select(path):
    """The columns with types that all engines can agree on."""
    path = f"{path}/*.parquet" if pathlib.Path(path).is_dir() else path
    columns = ", ".join(f'CAST("{name}" AS {KINDS.get(name, "VARCHAR")}) AS "{name}"' for name in COLUMNS)
    return f"SELECT {columns} FROM read_parquet('{path}')"


def main(one, other):
    tables = duckdb.connect()
    tables.execute("SET TimeZone = 'UTC'")
    tables.execute(f"CREATE TABLE a AS {select(one)}")
    tables.execute(f"CREATE TABLE b AS {select(other)}")
    counted = {"rows": "a", "other_rows": "b", "only_one": "(FROM a EXCEPT ALL FROM b)",
               "only_other": "(FROM b EXCEPT ALL FROM a)"}
    found = {name: tables.execute(f"SELECT count(*) FROM {what}").fetchone()[0] for name, what in counted.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
