"""duckdb_tables.py RAW OUT: the table of examples/ads, by DuckDB alone, with the SQL of the example."""
import pathlib
import sys

import duckdb

from columns import FILES, TYPES

SQL = pathlib.Path(__file__).resolve().parents[3] / "examples/ads/sql"
KINDS = {"int64": "BIGINT", "double": "DOUBLE", "text": "VARCHAR", "timestamp": "TIMESTAMP"}


def read(tables, raw, name):
    """A CSV source with declared types; rows with a value of another type are left out."""
    types = {**TYPES[name], **({"price": "decimal"} if name == "prices" else {})}
    kinds = {**KINDS, "decimal": "DECIMAL(12, 2)"}
    # 10003.7 is a BIGINT to DuckDB's CAST, so whole numbers are checked as texts.
    whole = {column: f" AND regexp_full_match(\"{column}\", '[+-]?[0-9]+')"
             for column, kind in types.items() if kind == "int64"}
    good = " AND ".join(f'("{column}" IS NULL OR TRY_CAST("{column}" AS {kinds[kind]}) IS NOT NULL{whole.get(column, "")})'
                        for column, kind in types.items())
    columns = ", ".join(f'CAST("{column}" AS {kinds[kind]}) AS "{column}"' for column, kind in types.items())
    path = f"{raw}/{FILES.get(name, name + '.csv')}"
    source = f"read_csv('{path}', all_varchar = true, header = true, ignore_errors = true, escape = '\"')"
    tables.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM {source} WHERE {good}")


def main(raw, out):
    tables = duckdb.connect()
    tables.execute("SET threads = 2")
    for name in TYPES:
        read(tables, raw, name)
    tables.execute(f"CREATE VIEW users AS SELECT * FROM '{raw}/users.parquet'")
    tables.execute(f"CREATE VIEW campaigns AS SELECT * FROM read_csv('{raw}/campaigns.csv', all_varchar = true)")
    for table, name in ("campaign", "campaigns"), ("clean", "clean"):
        tables.execute(f"CREATE TABLE {table} AS {(SQL / name).with_suffix('.sql').read_text()}")
    joined = (SQL / "joined.sql").read_text()
    tables.execute(f"COPY (SELECT * FROM ({joined}) ORDER BY event) TO '{out}' (FORMAT parquet, COMPRESSION zstd)")


if __name__ == "__main__":
    main(*sys.argv[1:])
