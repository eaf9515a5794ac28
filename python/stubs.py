"""stubs.py LEAT: writes leat/__init__.pyi, what type checkers and editors read, from the tables of the command.

The rest of the interface does not change with the tables and is taken from the package's own source.
"""
from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Dict, List

HEAD = '''\
# Made by python/stubs.py from the tables of sources and ops.
import os
from typing import Any, Callable, Dict, Iterable, Literal, Mapping, Optional, Sequence, Union

import numpy as np

from . import errors as errors
from . import jax as jax
from . import keras as keras
from . import lightning as lightning
from . import step as step
from . import tensorflow as tensorflow
from . import torch as torch
from ._batch import Batch as Batch
from ._batch import Ragged as Ragged
from ._build import Build as Build
from ._build import build as build
from ._feed import Feed as Feed
from ._feed import FieldSpec as FieldSpec
from ._handle import Bad as Bad
from ._options import Storage
from ._pipeline import Pipeline as _Base
from ._recorder import Recorder as Recorder
from ._text import feature as feature
from ._watch import tag as tag
from ._watch import watch as watch
from ._xray import xray as xray
from ._xray_result import Xray as Xray
from .errors import *

_Text = Union[str, "os.PathLike[str]"]
_Floats = Union[float, Sequence[float], "np.ndarray[Any, Any]"]

__version__: str

def feed(spec: Union[str, "Pipeline"], *, seed: int = ..., epochs: int = ..., threads: int = ...,
         memory: Union[int, str] = ..., rank: Optional[int] = ..., world: Optional[int] = ...,
         on_error: Literal["fail", "skip", "replace"] = ..., max_bad: Optional[int] = ...,
         fingerprint: Literal["names", "full"] = ..., max_pixels: Optional[int] = ...,
         max_bytes: Union[int, str, None] = ..., bad: Optional[_Text] = ...,
         storage: Optional[Storage] = ..., trace: Union[None, _Text, Recorder] = ...,
         report: Optional[_Text] = ..., tune: bool = ...) -> Feed: ...
def pipeline(spec: str) -> "Pipeline": ...
def merge_stats(runs: Iterable[Union[str, Dict[str, Any]]]) -> Dict[str, Any]: ...
def array(**arrays: Any) -> "Pipeline": ...
def arrow(table: Any, *, columns: Union[None, str, Sequence[str]] = ...,
          null: Optional[Literal["error", "zero", "nan"]] = ...) -> "Pipeline": ...
'''

PIPELINE = '''
class Pipeline(_Base):
    def __or__(self, ops: str) -> "Pipeline": ...
    def map(self, function: Callable[..., Any], fields: Union[None, str, Sequence[str], Mapping[str, Any]] = ..., *,
            returns: Optional[Mapping[str, Any]] = ..., version: str = ...,
            workers: Optional[str] = ...) -> "Pipeline": ...
    def map_batch(self, function: Callable[..., Any]) -> "Pipeline": ...'''

TYPES = {
    "int": "Union[int, str]",
    "float": "Union[float, str]",
    "bool": "bool",
    "string": "_Text",
    "size": "Union[int, str]",
    "angle": "str",
    "floats": "_Floats",
    "strings": "Union[_Text, Sequence[_Text], Mapping[str, Any]]",
}


def type_of(option: Dict[str, Any]) -> str:
    if option["type"] != "enum":
        return TYPES[option["type"]]
    choices = "Literal[" + ", ".join(json.dumps(choice) for choice in option["choices"]) + "]"
    return f"Union[{choices}, Any]" if option["name"] == "dtype" else choices  # NumPy's types too


def parameters(item: Dict[str, Any]) -> List[str]:
    """As _ops.parameters_of makes them."""
    if item["free_form"]:
        return ["**fields: Any"]
    positional = [option for option in item["options"] if option["positional"]]
    out, named, optional, starred = [], [], False, False
    for i, option in enumerate(positional):
        required = option["default"] is None
        if required and optional:
            named.append(option)
        elif required and option["type"] == "strings" and i + 1 == len(positional):
            out.append(f"*{option['name']}: {type_of(option)}")
            starred = True
        else:
            out.append(f"{option['name']}: {type_of(option)}" + ("" if required else " = ..."))
            optional = optional or not required
    named += [option for option in item["options"] if not option["positional"]]
    named += [{**option, "name": option["was"]} for option in item["options"] if "was" in option]
    if named and not starred:
        out.append("*")
    for option in named:
        out.append(f"{option['name']}: {type_of(option)}" + ("" if option["default"] is None else " = ..."))
    return out


def define(item: Dict[str, Any], indent: str, first: List[str]) -> str:
    doc = json.dumps(item["doc"], ensure_ascii=False)
    return (f"{indent}def {item['name']}({', '.join(first + parameters(item))}) -> \"Pipeline\":\n"
            f"{indent}    {doc}\n{indent}    ...\n")


def main(command: str) -> None:
    items = json.loads(subprocess.run([command, "ops", "--json"], check=True, stdout=subprocess.PIPE).stdout)["items"]
    print(HEAD)
    for item in items:
        if item["kind"] == "source" and item["name"] != "arrow":
            print(define(item, "", []), end="")
    print(PIPELINE)
    for item in items:
        if item["kind"] != "source" and item["name"] != "map":
            print(define(item, "    ", ["self"]), end="")


if __name__ == "__main__":
    main(sys.argv[1])
