"""The errors of a store by kind: in goes a URL, out comes the first error of each kind. Light: ``status`` reads it."""

import re
from dataclasses import replace

from predcube import storage


def error_kinds(url: str) -> list[storage.TileError]:
    """The first error of each kind in a store's ledger, with how many tiles have one of that kind, most frequent first.
    Errors that differ in their cell, their trial or the numbers that they name are of one kind."""
    kinds: dict[str, storage.TileError] = {}
    for error in storage.first_errors(url):
        kind = re.sub(r"\d[\d.e+-]*", "#", error.message.partition(", trial ")[2] or error.message)
        seen = kinds.get(kind)
        if seen is None:
            kinds[kind] = error
        else:
            first = min(seen, error, key=lambda e: e.key)
            kinds[kind] = replace(first, count=seen.count + error.count)
    return sorted(kinds.values(), key=lambda e: (-e.count, e.key))
