"""Sections on a command line: in goes a text like ``stable:gamma=0.1,convention=outline``, out comes a table of a spec.

The kind, then what it is given, as in TOML but for two comforts: a word needs no quotes, and a table in braces may be
written as a section of its own, ``subsample:subset_size=20,inner={df_realizable:epsilon=1,alpha=0.1}``.
"""

import re
import tomllib
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_CLOSING = {"[": "]", "{": "}"}


def inline(text: str) -> dict[str, Any]:
    """The table that a text describes. ValueError says what in it cannot be read.

    >>> inline("boxes")
    {'kind': 'boxes'}
    >>> inline("private: epsilon=1, alpha=.1, convention=outline")
    {'kind': 'private', 'epsilon': 1, 'alpha': 0.1, 'convention': 'outline'}
    >>> inline("subsample:subset_size=3,inner={exponential:epsilon=2}")["inner"]
    {'kind': 'exponential', 'epsilon': 2}
    """
    kind, colon, rest = text.partition(":")
    if not kind.strip() or (colon and not rest.strip()):
        raise ValueError(f"{text!r} is no KIND:param=value,…; write for example stable:gamma=0.1")
    found: dict[str, Any] = {"kind": kind.strip()}
    for part in _parts(rest) if colon else []:
        name, sign, value = (p.strip() for p in part.partition("="))
        if not (name and sign and value):
            raise ValueError(f"{part.strip()!r} in {text!r} is no param=value; write for example gamma=0.1")
        if name in found:
            raise ValueError(f"{name} stands twice in {text!r}; keep one")
        found[name] = _value(value)
    return found


def _parts(text: str) -> list[str]:
    """The text cut at its commas, but for those inside brackets, braces and quotes."""
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


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        if text.startswith("{"):
            return inline(text[1:-1])
        return float(text) if _NUMBER.fullmatch(text) else text
