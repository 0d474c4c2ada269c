"""A spec as it was given made into a dictionary: in goes a path, TOML text or a dictionary, out come its keys.

Nothing is checked here but that it can be read, and that it is TOML.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predcube.pipeline.failures import BadInput
from predcube.pipeline.spec.mistakes import show

# An unquoted dotted key at the start of a line: the usual reason why [sweep] is refused.
_DOTTED = re.compile(r"^\s*([A-Za-z_][\w-]*(?:\s*\.\s*[\w-]+)+)\s*=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A spec that could be read. ``text`` is verbatim (JSON where a dictionary was given); relative paths in it start
    at ``directory``; ``name`` is what messages call it."""

    raw: Mapping[str, Any]
    text: str
    directory: str
    name: str


def read(spec: str | Path | Mapping[str, Any]) -> Source:
    """Read a spec. A string with a line break or an equals sign is TOML text, any other a path. ``BadInput`` where the
    file cannot be read or is not TOML."""
    if isinstance(spec, Mapping):
        try:
            text = json.dumps(spec, indent=1)
        except (TypeError, ValueError) as e:
            raise BadInput(f"spec: {e}; give plain numbers, strings, lists and dictionaries") from e
        # As it reads back: tuples are lists, keys are text.
        return Source(raw=json.loads(text), text=text, directory=".", name="spec")
    if isinstance(spec, str) and ("\n" in spec or ("=" in spec and not spec.endswith(".toml"))):
        return Source(raw=_parse(spec, "spec"), text=spec, directory=".", name="spec")
    path = Path(spec)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; give the path of a sweep spec (TOML)") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: this is a folder; give the path of a sweep spec (TOML)") from None
    except UnicodeDecodeError as e:
        raise BadInput(f"{path}: not UTF-8 text (byte {e.start}); save the spec as UTF-8") from None
    except OSError as e:
        raise BadInput(f"{path}: cannot be read ({e.strerror}); give a readable sweep spec (TOML)") from None
    return Source(raw=_parse(text, str(path)), text=text, directory=str(path.parent), name=str(path))


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise BadInput(f"{name}: {_explain(text, str(e))}") from None


def _explain(text: str, message: str) -> str:
    """TOML's own refusal with the line it means, and the cure where the cause is a bare dotted key."""
    lines = text.splitlines()
    place = re.search(r"at line (\d+), column", message)
    # At the end of the document the parser has already left the last line that holds anything.
    number = int(place.group(1)) if place else max((i for i, s in enumerate(lines, 1) if s.strip()), default=1)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    reason = message.partition(" (at ")[0].lower()
    if "overwrite" in reason or "twice" in reason or "mutate" in reason:
        taken = set(re.findall(r"[\w-]+", line.partition("=")[0]))
        dotted = [
            (i, m) for i, s in enumerate(lines, 1) if (m := _DOTTED.match(s)) and m.group(1).split(".")[0] in taken
        ]
        if dotted:
            at, match = dotted[-1]
            key = re.sub(r"\s", "", match.group(1))
            clash = f"{show(line.strip())} clashes with {key} on line {at}, which" if at != number else key
            return f'line {number}: {clash} without quotes is read as nested tables; quote the path: "{key}" = …'
        return f"line {number}: {show(line.strip())} is already set above; keep one of the two"
    bare = re.match(r"^\s*[^=]+=\s*([A-Za-z_]\w*)\s*(#.*)?$", line)
    cure = f'; text is written in quotes: "{bare.group(1)}"' if bare else ""
    half = re.match(r"^[^=#]+=\s*\[?\s*([+-]?)(\.\d+)", line)
    comma = re.match(r"^[^=#]+=\s*([+-]?\d+),(\d+)\s*(#.*)?$", line)
    if half:
        cure = f"; a number begins with a digit: {half.group(1)}0{half.group(2)}"
    elif comma:
        cure = f"; a decimal point is a point: {comma.group(1)}.{comma.group(2)}"
    return f"line {number}: not TOML, {reason}: {show(line.strip())}{cure}"
