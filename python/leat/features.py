"""Compute features that `leat features` has fitted, for rows of any size: the same bits as the command gives.

    import leat

    features = leat.features.load("feats")          # a folder that `leat features` or a step made
    features.transform({"amount": [12.5], "product": ["tea"]})   # {"amount": [0.31], "product": [17]}

Rows are a dict of lists, a pandas DataFrame or an Arrow table, and so is the result. Features that read earlier rows
(`lag`, `rolling`) need them: `features.transform(rows, history=earlier)`. Needs DuckDB (`pip install duckdb`),
which runs the SQL of the state without access to files.
"""
from __future__ import annotations

import json
import threading
import warnings
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .errors import DataError, InvalidError

__all__ = ["Features", "load"]

_VERSION = 1
_MOST_BYTES = 64 << 20


def load(state: "Union[str, Path]") -> "Features":
    """Open the state in a folder: `feats`, which `leat features` made, or its `feats/state`."""
    for folder in (Path(state), Path(state, "state")):
        if (folder / "features.json").is_file():
            return Features(folder)
    raise InvalidError(f"there is no features.json in '{state}'; give the folder that 'leat features' made")


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Features:
    """Fitted features. Any thread may call `transform`; calls take turns."""

    def __init__(self, folder: Path) -> None:
        state = _read(folder / "features.json")
        self._inputs: List[Dict[str, Any]] = state["inputs"]
        self._outputs: List[Dict[str, Any]] = state["outputs"]
        self._layers: List[str] = state["layers"]
        self._groups: Optional[List[Dict[str, str]]] = state.get("groups")
        self._qualify: str = "".join(state.get("qualify", []))
        self._lock = threading.Lock()
        #: what was fitted, as in features.json
        self.fitted: List[Dict[str, Any]] = state["fitted"]
        self._connection = _connect(folder, state)

    @property
    def inputs(self) -> List[str]:
        """Columns that rows need."""
        return [i["name"] for i in self._inputs if i["needed"]]

    @property
    def outputs(self) -> List[str]:
        """Columns of the result. Kept ones are left out if rows lack them."""
        return [o["name"] for o in self._outputs]

    def transform(self, rows: Any, history: Any = None) -> Any:
        """The features of rows, in the same order and the same kind of table.

        Features that read other rows (`lag`, `rolling`, and all after `dedupe`) need `history`: the earlier rows of the
        same groups, as the same kind of table; they are read, but not part of the result. An empty one (`{}`) says that
        rows have it all. Of duplicates, the result has only what `dedupe` keeps."""
        if self._groups is None:
            history = None  # each row is computed from itself alone
        elif history is None:
            raise InvalidError(self._needs_history())
        with self._lock:
            if isinstance(rows, Mapping):
                known = self._insert(rows)
                before = self._insert(history, "earlier", known) if history else 0
                return self._collect(rows, before)
            before = len(history) if history is not None else 0
            if before and _is_pandas(history) != _is_pandas(rows):
                raise InvalidError("history must be the same kind of table as rows")
            query = self._query(_columns(rows), before)
            self._connection.register("given", rows)
            if before:
                self._connection.register("earlier", history)
            try:
                result = self._connection.execute(query)
                return result.df() if _is_pandas(rows) else result.to_arrow_table()
            finally:
                self._connection.unregister("given")
                if before:
                    self._connection.unregister("earlier")

    def _needs_history(self) -> str:
        who = [f"feature '{group['feature']}' ({group['transform']})" for group in self._groups or []]
        return (f"{who[0] if who else 'dedupe'} reads other rows than the one it computes: give the earlier rows of the "
                "same groups as transform(rows, history=...), or history={} if rows have them all")

    def _insert(self, rows: Mapping[str, Sequence[Any]], table: str = "given", like: Sequence[str] = ()) -> Any:
        """Makes a table. Of `given`, returns the names of its columns; of `earlier`, which gets the same, its rows."""
        if not isinstance(rows, Mapping):
            raise InvalidError("history must be the same kind of table as rows")
        known = [i for i in self._inputs if i["name"] in (like or rows)]
        lacking = [i["name"] for i in known if i["name"] not in rows and i["needed"]]
        if lacking:
            raise InvalidError(f"history has no column '{lacking[0]}'")
        count = max((len(rows[i["name"]]) for i in known if i["name"] in rows), default=0) if like else 0
        lists = [_list_of(rows[i["name"]], i["name"]) if i["name"] in rows else [None] * count for i in known]
        if len({len(values) for values in lists}) > 1:
            raise InvalidError("the lists of rows have different lengths")
        items = [_given(i["type"]) + f" AS {_name(i['name'])}" for i in known]
        if not items:
            raise InvalidError(f"rows have none of the columns that features read: {', '.join(self.inputs)}")
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {', '.join(items)}",
                                 [_json(values) if i["type"] else values for i, values in zip(known, lists)])
        return len(lists[0]) if like else [i["name"] for i in known]

    def _collect(self, rows: Mapping[str, Any], before: int) -> Dict[str, List[Any]]:
        try:
            result = self._connection.execute(self._query(list(rows), before))
            names = [column[0] for column in result.description]
            found = result.fetchall()
        finally:
            self._connection.execute("DROP TABLE given; DROP TABLE IF EXISTS earlier")
        return {name: [row[i] for row in found] for i, name in enumerate(names)}

    def _query(self, columns: List[str], before: int) -> str:
        missing = [i["name"] for i in self._inputs if i["name"] not in columns]
        needed = [name for name in missing if name in self.inputs]
        if needed:
            raise InvalidError(f"rows have no column '{needed[0]}'; they have {', '.join(map(repr, columns))}")
        table = "(SELECT * FROM earlier UNION ALL BY NAME SELECT * FROM given)" if before else "given"
        number = ", row_number() OVER () AS leat_row" if self._groups is not None else ""
        rows = f"(SELECT *{''.join(f', NULL AS {_name(name)}' for name in missing)}{number} FROM {table})"
        sql = f"SELECT {self._layers[0]} FROM {rows} AS t" + (f" QUALIFY {self._qualify}" if self._qualify else "")
        for layer in self._layers[1:-1]:
            sql = f"SELECT {layer} FROM ({sql})"
        order = f" WHERE u.leat_row > {before} ORDER BY u.leat_row" if self._groups is not None else ""
        kept = [o["name"] for o in self._outputs if o.get("keeps") not in missing]
        return f"SELECT {', '.join(map(_name, kept))} FROM (SELECT {self._layers[-1]} FROM ({sql}) AS u{order})"


def _read(path: Path) -> Dict[str, Any]:
    with open(path, "rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise DataError(f"'{path}' is too large for a state of features")
    try:
        state = json.loads(text)
        version = state["leat_features"]
        if version == _VERSION:
            _check(state)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as why:
        raise DataError(f"'{path}' is not a state of features: {why!r}") from None
    if version != _VERSION:
        raise DataError(f"'{path}' has version {version}; this leat reads version {_VERSION}")
    return state


def _check(state: Dict[str, Any]) -> None:
    for item in state["inputs"]:
        if not isinstance(item["name"], str) or not isinstance(item["needed"], bool) or not set(item["type"]) <= _TYPE:
            raise ValueError("an input")
    for item in state["outputs"]:
        if not isinstance(item["name"], str):
            raise ValueError("an output")
    for item in state["fitted"]:
        if "dictionary" in item and (not set(item["dictionary"]) <= _WORD or not isinstance(item["entries"], int)):
            raise ValueError("a dictionary")
        if item.get("lookup", "mean") != "mean":
            raise ValueError("a dictionary")
    for item in state.get("groups", []):
        if not isinstance(item["feature"], str) or not isinstance(item["transform"], str):
            raise ValueError("a group")
    if not isinstance(state.get("qualify", []), list) or not all(isinstance(text, str) for text in state.get("qualify", [])):
        raise ValueError("the condition of dedupe")
    if not state["layers"] or not all(isinstance(layer, str) for layer in state["layers"]):
        raise ValueError("the layers")


_TYPE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789(),[]")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")


def _connect(folder: Path, state: Dict[str, Any]) -> Any:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise ModuleNotFoundError("leat.features needs DuckDB: pip install duckdb", name="duckdb") from None
    if duckdb.__version__ != state["duckdb"]:
        warnings.warn(f"the features in '{folder}' were fitted with DuckDB {state['duckdb']}, but this is "
                      f"{duckdb.__version__}; last digits may differ", stacklevel=3)
    connection = duckdb.connect(":memory:", config={"threads": 1, "autoinstall_known_extensions": False,
                                                    "autoload_known_extensions": False})
    connection.execute("SET TimeZone = 'UTC'")
    for item in state["fitted"]:
        if item.get("entries"):
            name = item["dictionary"]
            file = f"read_parquet({_text(str(folder / name) + '.parquet')})"
            connection.execute(f"CREATE TYPE {_name(name)} AS ENUM "
                               f"(SELECT CAST(value AS VARCHAR) FROM {file} ORDER BY id)")
            column = f"CAST({item['lookup']} AS DOUBLE)" if "lookup" in item else "CAST(count AS BIGINT)"
            connection.execute(f"SET VARIABLE {name} = (SELECT list({column} ORDER BY id) FROM {file})")
    # From here on, nothing in the SQL of the state can reach a file.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _list_of(values: Any, name: str) -> List[Any]:
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidError(f"column '{name}' must be a list, with one value per row")
    return list(values)


def _given(type_: str) -> str:
    """SQL of a parameter with a column. DuckDB takes 0.1 ms for each item of a list, so it gets texts in JSON instead."""
    form = '[["VARCHAR"]]' if type_.endswith("[]") else '["VARCHAR"]'
    return f"CAST(unnest(from_json(CAST(? AS JSON), '{form}')) AS {type_})" if type_ else "unnest(?)"


def _json(values: List[Any]) -> str:
    return json.dumps([_as_text(value) for value in values], ensure_ascii=False)


def _as_text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return [_as_text(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(float(value))  # reads back to the bit; nan and inf, too
    return str(value)


def _is_pandas(rows: Any) -> bool:
    return type(rows).__module__.split(".")[0] == "pandas"


def _columns(rows: Any) -> List[str]:
    if _is_pandas(rows):
        return list(rows.columns)
    if hasattr(rows, "column_names"):
        return list(rows.column_names)
    raise InvalidError(f"rows are a dict of lists, a pandas DataFrame or an Arrow table, not {type(rows).__name__}")
