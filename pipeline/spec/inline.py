"""Sections on a command line: in goes a text like ``stable:gamma=0.1,convention=outline``, out comes a table of a spec.

The kind, then what it is given, as in TOML but for three comforts: a word needs no quotes; a table in braces may be
written as a section of its own, ``subsample:subset_size=20,inner={df_realizable:epsilon=1,alpha=0.1}`` (or
``inner={kind=erm}``, a table without its quotes); and where the
kinds are known, a list of names needs no brackets, ``linear:target=y,features=age,sex``. Or the whole as a TOML table,
``{ kind = "mean", columns = ["age"] }``.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from predcube.pipeline.spec.fields import Declared, declared

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PARAMETER = re.compile(r"\s*\w+\s*=")
_CLOSING = {"[": "]", "{": "}", "(": ")"}


def inline(text: str, kinds: Mapping[str, type] | None = None) -> dict[str, Any]:
    """The table that a text describes. With ``kinds``, texts are taken as they stand where a kind takes text, and a
    list goes on until the next parameter of the kind. ValueError says what in it cannot be read.

    >>> inline("boxes")
    {'kind': 'boxes'}
    >>> inline("private: epsilon=1, alpha=.1, convention=outline")
    {'kind': 'private', 'epsilon': 1, 'alpha': 0.1, 'convention': 'outline'}
    >>> inline("subsample:subset_size=3,inner={exponential:epsilon=2}")["inner"]
    {'kind': 'exponential', 'epsilon': 2}
    """
    if text.lstrip().startswith("{"):
        return _table(text, kinds)
    if _PARAMETER.match(text):
        text = _kind_first(text)
    kind, colon, rest = text.partition(":")
    if not kind.strip() or (colon and not rest.strip()):
        raise ValueError(f"{text!r} is no KIND:param=value,…; write for example stable:gamma=0.1")
    found: dict[str, Any] = {"kind": kind.strip()}
    if kinds is not None and kind.strip() not in kinds:
        return found  # who knows the kinds says so; of its parameters nothing is known
    fields = declared(kinds[kind.strip()]) if kinds is not None else {}
    last = ""
    for part in _parts(rest) if colon else []:
        name, sign, value = (p.strip() for p in part.partition("="))
        if part.strip() and last and (not sign or name not in fields):
            found[last].append(_word(part.strip()))
            continue
        if not (name and sign and value):
            raise ValueError(f"{part.strip()!r} in {text!r} is no param=value; write for example gamma=0.1")
        if name in found:
            raise ValueError(f"{name} stands twice in {text!r}; keep one")
        last = name if name in fields and _lists_text(fields[name]) and not value.startswith("[") else ""
        if last:
            found[name] = [_word(value)]
        else:
            found[name] = _word(value) if name in fields and fields[name].annotation is str else _value(value, kinds)
    return found


def _lists_text(field: Declared) -> bool:
    return bool(field.annotation == tuple[str, ...])


def _parts(text: str) -> list[str]:
    """The text cut at its commas, but for those inside brackets, braces, parentheses and quotes."""
    parts, open_, quote = [""], [], ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _CLOSING:
            open_.append(_CLOSING[letter])
        elif open_ and letter == open_[-1]:
            open_.pop()
        if letter == "," and not open_ and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if open_ or quote:
        raise ValueError(f"{text!r} lacks a closing {open_[-1] if open_ else quote}; quote the whole for the shell")
    return parts


def _kind_first(text: str) -> str:
    """``kind=erm,…`` as ``erm:…``; a text without a kind as it is."""
    parts = [part.strip() for part in _parts(text)]
    named = [part for part in parts if re.match(r"kind\s*=", part)]
    if len(named) != 1:
        return text
    rest = ",".join(part for part in parts if part not in named)
    return _word(named[0].partition("=")[2].strip()) + (f":{rest}" if rest else "")


def _table(text: str, kinds: Mapping[str, type] | None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = tomllib.loads(f"v = {text.strip()}")["v"]
    except tomllib.TOMLDecodeError as e:
        body = text.strip().removeprefix("{").removesuffix("}")
        if text.strip().endswith("}") and _PARAMETER.match(body) and _kind_first(body) != body:
            return inline(body, kinds)
        reason = str(e).partition(" (at ")[0].lower()
        raise ValueError(f'{text!r} is no TOML table ({reason}); write for example {{ kind = "mean" }}') from e
    return found


def _value(text: str, kinds: Mapping[str, type] | None) -> Any:
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        if text.startswith("{"):
            return inline(text[1:-1], kinds)
        if text.startswith("[") and text.endswith("]"):
            return [_value(part.strip(), kinds) for part in _parts(text[1:-1])]
        return float(text) if _NUMBER.fullmatch(text) else text


def _word(text: str) -> str:
    """A text as it stands, without quotes around the whole of it."""
    if text[:1] not in "\"'":
        return text
    try:
        found = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
    return found if isinstance(found, str) else text
