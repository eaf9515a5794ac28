"""Functions and methods generated from the library's tables of sources and ops.

No op is listed here: every source of the library becomes a function of `leat` and every op a method of
`leat.Pipeline`, with the signature and documentation of its table.
"""
from __future__ import annotations

import functools
import inspect
import json
import re
from typing import Any, Callable, Dict, List, Tuple

from . import _lib, _text
from .errors import InvalidError

_REQUIRED = inspect.Parameter.empty


@functools.lru_cache(maxsize=None)
def described() -> Dict[str, Any]:
    """The library's tables: sources and ops (`items`) and the counters of a feed (`stats`)."""
    return json.loads(_lib.taken(_lib.describe()))


def load() -> List[Dict[str, Any]]:
    return described()["items"]


def stats_doc() -> str:
    return "\n".join(f"    {stat['name']} ({stat['unit']}): {stat['doc']}" for stat in described()["stats"])


def default_of(option: Dict[str, Any]) -> Any:
    """An option's default as a Python value; the table has it as spec text."""
    text = option["default"]
    if text is None:
        return _REQUIRED
    if option["type"] in ("string", "enum"):
        return text
    if option["type"] == "bool":
        return text == "true"
    try:
        return json.loads(text)
    except ValueError:
        return text  # 40deg, 1/255, [word]


def parameters_of(item: Dict[str, Any]) -> List[inspect.Parameter]:
    """The parameters of an item: positional ones in table order, the others keyword-only.

    A required list as the last positional parameter takes all remaining arguments, as in a spec. A required option
    after one with a default is keyword-only in Python.
    """
    if item["free_form"]:
        return [inspect.Parameter("fields", inspect.Parameter.VAR_KEYWORD)]
    positional = [option for option in item["options"] if option["positional"]]
    rest = [option for option in item["options"] if not option["positional"]]
    out: List[inspect.Parameter] = []
    named = []
    for i, option in enumerate(positional):
        default = default_of(option)
        if default is _REQUIRED and any(p.default is not _REQUIRED for p in out):
            named.append(option)
        elif default is _REQUIRED and option["type"] == "strings" and i + 1 == len(positional):
            out.append(inspect.Parameter(option["name"], inspect.Parameter.VAR_POSITIONAL))
        else:
            out.append(inspect.Parameter(option["name"], inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    for option in named + rest:
        out.append(inspect.Parameter(option["name"], inspect.Parameter.KEYWORD_ONLY, default=default_of(option)))
    return out


_KINDS = {
    "int": "integer",
    "float": "number",
    "bool": "True or False",
    "string": "string",
    "size": "bytes, or string such as '4MiB'",
    "angle": "string such as '40deg' or '0.5rad'",
    "floats": "number or list of numbers",
    "strings": "string or list of strings",
}


def _range(option: Dict[str, Any]) -> str:
    if option.get("choices"):
        return "one of " + ", ".join(option["choices"])
    low, high = option.get("min"), option.get("max")
    kind = _KINDS[option["type"]]
    if option["type"] == "bool" or low is None:
        return kind
    return f"{kind}, at least {low:g}" if high is None else f"{kind}, {low:g} to {high:g}"


def doc_of(item: Dict[str, Any]) -> str:
    lines = [item["doc"], ""]
    if item["options"]:
        lines.append("Args:")
        for option in item["options"]:
            default = default_of(option)
            given = "required" if default is _REQUIRED else f"default {default!r}"
            also = f"; also {option['was']}" if "was" in option else ""
            lines.append(f"    {option['name']}: {option['doc']} ({_range(option)}; {given}{also})")
        lines.append("")
    lines.append(f"In a spec: {item['example']}")
    return "\n".join(lines)


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


def _free_form_text(item: Dict[str, Any], given: Dict[str, Any]) -> str:
    to_text = _text.feature_value if item["name"] == "example" else _text.to_text
    for name in given:
        if not _WORD.match(name):
            raise InvalidError(f"{name!r} is not a valid field name; use letters, digits, '_', '.' and '-'")
    return ", ".join(f"{name}={to_text(value)}" for name, value in given.items())


def _call_text(item: Dict[str, Any], signature: inspect.Signature, args: Tuple[Any, ...], named: Dict[str, Any]) -> str:
    """The spec text of one call, with only the options that were given. Old option names are accepted."""
    for option in item["options"]:
        if option.get("was") in named and option["name"] not in named:
            named[option["name"]] = named.pop(option["was"])
    try:
        bound = signature.bind(*args, **named)
    except TypeError as problem:
        raise TypeError(f"{item['name']}(): {problem}") from None
    if item["free_form"]:
        inside = _free_form_text(item, bound.arguments.get("fields", {}))
    else:
        kinds = {option["name"]: option["type"] for option in item["options"]}
        parts, in_order = [], True
        for parameter in signature.parameters.values():
            name = parameter.name
            if name not in bound.arguments:
                in_order = False
                continue
            value = bound.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                value = value[0] if len(value) == 1 else list(value)
            if parameter.kind is parameter.KEYWORD_ONLY:
                in_order = False
            text = _text.to_text(value, kinds[name])
            parts.append(text if in_order else f"{name}={text}")
        inside = ", ".join(parts)
    return item["name"] + (f"({inside})" if inside else "")


def maker(item: Dict[str, Any], method: bool, make: Callable[..., Any]) -> Callable[..., Any]:
    """The function for an item: a source makes a pipeline; an op (`method`) appends to one."""
    parameters = parameters_of(item)
    signature = inspect.Signature(parameters)
    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] if method else []

    def function(*args: Any, **named: Any) -> Any:
        return make(*args[:len(own)], _call_text(item, signature, args[len(own):], named))

    function.__name__ = item["name"]
    function.__qualname__ = f"Pipeline.{item['name']}" if method else item["name"]
    function.__module__ = __package__
    function.__doc__ = doc_of(item)
    shown = inspect.Signature(own + parameters, return_annotation="Pipeline")
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function
