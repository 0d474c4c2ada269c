"""How halfspaces divide points: in go sorted distinct points, out come their labelings with one halfspace for each.

The rule (a function of the set T of points and the labeling alone): a constant labeling has the constant. Otherwise, of
the points in sorted order, with the first point + e_i appended where they span less than the space, take the first
p-tuple of affinely independent points, and the sign (+ first), whose plane weakly separates the labels; the points on
the plane follow the same rule inside it, the first coordinate in which its normal is not zero left out. On a line the
cut lies midway between the nearest opposite labels. Every labeling by a halfspace is found so.

A halfspace is a row: the tuple (p·p numbers), its sign, the coordinate left out, then the row of the halfspace inside
the plane; on the line (z, o), the nearest points labelled 0 and 1, both +∞ for the constant 0 and −∞ for 1. Sign 0 is a
constant, told by the last entry. Sign 2 is the halfspace 1{w·x ≥ b} itself, w and b standing first.
"""

from fractions import Fraction
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from predcube.tasks.hypotheses.orientation import paired_signs, signs
from predcube.tasks.hypotheses.packing import Words, first_of_each, pack, unpack

WIDTH = {1: 2, 2: 8, 3: 19}
"""Length of a row by dimension."""
KEPT = {2: np.array([[1], [0]]), 3: np.array([[1, 2], [0, 2], [0, 1]])}
"""Coordinates kept where the first index is left out."""
NAMED = 2.0
"""The sign of a row that holds w and b."""
BLOCK = 2**24
"""Signs computed at once."""


def constants(p: int) -> NDArray[np.float64]:
    """The rows of the functions 0 and 1."""
    rows = np.zeros((2, WIDTH[p]))
    rows[:, -2:] = [[np.inf, np.inf], [-np.inf, -np.inf]]
    return rows


def separations(points: NDArray[np.float64]) -> tuple[Words, NDArray[np.float64]]:
    """The labelings of sorted distinct points (k, p) by halfspaces, packed and in canonical order, and the row of the
    rule for each: (M, W), (M, WIDTH[p])."""
    k, p = points.shape
    if k == 0:
        return np.zeros((1, 1), dtype=np.uint64), constants(p)[:1]
    if p == 1:
        return _on_a_line(points[:, 0])
    whole = np.concatenate([points, _spanning(points)])
    tuples = _tuples(len(whole), p)
    # Found labelings: their words, then (order, origin), where an origin from 0 on is a tuple, a sign and the labels of
    # its points, and one below 0 a row of ``listed``.
    words = [pack(np.stack([np.zeros(k, dtype=np.uint8), np.ones(k, dtype=np.uint8)]))]
    keys = [np.array([[-1, -1], [-1, -2]])]
    listed = [constants(p)]
    taken, seen = 2, set[bytes]()
    length = max(1, BLOCK // len(whole))
    for start in range(0, len(tuples), length):
        side = signs(whole[tuples[start : start + length]], whole)
        proper = (side != 0).any(axis=1)  # else the tuple is not affinely independent
        number = start + np.flatnonzero(proper)
        side = side[proper]
        on = side == 0
        sides = np.stack([pack(side[:, :k] > 0), pack(side[:, :k] < 0)], axis=1)  # (A, 2, W)
        simple = (on.sum(axis=1) == p) & (tuples[number] < k).all(axis=1)
        words.append(_simple(k, tuples[number[simple]], sides[simple]))
        origin = (number[simple, None] * 2 ** (p + 1) + np.arange(2 ** (p + 1))).ravel()
        keys.append(np.column_stack([origin >> p, origin]))
        for t in np.flatnonzero(~simple):
            name = np.packbits(on[t]).tobytes()
            if name not in seen:
                seen.add(name)
                more, rows = _by_a_plane(whole, k, tuples[number[t]], on[t], sides[t])
                words.append(more)
                keys.append(
                    np.column_stack(
                        [2 * number[t] + np.repeat([0, 1], len(more) // 2), -1 - taken - np.arange(len(more))]
                    )
                )
                listed.append(rows)
                taken += len(rows)
    every, key = np.concatenate(words), np.concatenate(keys)
    order = np.argsort(key[:, 0], kind="stable")
    every, origin = every[order], key[order, 1]
    first = first_of_each(every)
    return every[first], _rows(whole[tuples], origin[first], np.concatenate(listed))


def _tuples(count: int, p: int) -> NDArray[np.int64]:
    """The p-tuples of increasing indices in lexicographic order: (C(count, p), p)."""
    flat = np.fromiter(chain.from_iterable(combinations(range(count), p)), dtype=np.int64, count=p * comb(count, p))
    return flat.reshape(-1, p)


def _on_a_line(values: NDArray[np.float64]) -> tuple[Words, NDArray[np.float64]]:
    k = len(values)
    up = np.triu(np.ones((k, k), dtype=np.uint8))  # row i: ones from point i on
    labels = np.concatenate([up, 1 - up])
    below = np.concatenate([[-np.inf], values[:-1]])
    ones = np.concatenate([[-np.inf], values[1:]])
    z_up, o_up = below, ones
    z_down, o_down = np.concatenate([[np.inf], values[1:]]), np.concatenate([[np.inf], values[:-1]])
    rows = np.concatenate([np.column_stack([z_up, o_up]), np.column_stack([z_down, o_down])])
    words = pack(labels)
    first = first_of_each(words)
    return words[first], rows[first]


def _spanning(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first point + e_i for those i that the span of the points and of those before lacks."""
    p = points.shape[1]
    added: list[NDArray[np.float64]] = []
    basis = points[:1]
    rank = 0
    for candidate in points[1:]:
        if rank < p and _independent(np.concatenate([basis, candidate[None]])):
            basis, rank = np.concatenate([basis, candidate[None]]), rank + 1
    for i in range(p):
        if rank == p:
            break
        extra = points[:1].copy()
        extra[0, i] = _beyond(extra[0, i])
        if _independent(np.concatenate([basis, extra])):
            basis, rank = np.concatenate([basis, extra]), rank + 1
            added.append(extra)
    return np.concatenate(added) if added else np.empty((0, p))


def _beyond(x: float) -> float:
    """x + 1, or the next float where 1 is lost: only that the coordinate differs matters."""
    return x + 1.0 if x + 1.0 != x else float(np.nextafter(x, np.inf))


def _independent(points: NDArray[np.float64]) -> bool:
    """Whether 2 to p + 1 distinct points of R^p are affinely independent."""
    r, p = points.shape
    if r == 2:
        return True
    if r == p + 1:
        return bool(paired_signs(points[None, :p], points[p:])[0])
    return any(bool(paired_signs(points[None, :2, kept], points[2:, kept])[0]) for kept in KEPT[3])


def _patterns(p: int) -> NDArray[np.uint8]:
    return ((np.arange(2**p)[:, None] >> np.arange(p - 1, -1, -1)) & 1).astype(np.uint8)


def _simple(k: int, tuples: NDArray[np.int64], sides: Words) -> Words:
    """What planes that hold no other points than their tuples separate, by sign and labels of the tuple: tuples (A, p)
    of k points, ``sides`` (A, 2, W) → (A·2·2^p, W)."""
    p = tuples.shape[1]
    bits = pack(np.eye(k, dtype=np.uint8))[tuples]  # (A, p, W)
    inside = np.zeros((len(tuples), 2**p, bits.shape[2]), dtype=np.uint64)
    for j in range(p):
        inside |= np.where(_patterns(p)[:, j, None] == 1, bits[:, None, j], np.uint64(0))
    both = sides[:, :, None] | inside[:, None]
    return both.reshape(-1, both.shape[-1])


def _rows(planes: NDArray[np.float64], origin: NDArray[np.int64], listed: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows of labelings by their origins; ``planes`` (L, p, p) are the tuples."""
    p = planes.shape[1]
    rows = np.empty((len(origin), WIDTH[p]))
    old = origin < 0
    rows[old] = listed[-1 - origin[old]]
    number, rest = np.divmod(origin[~old], 2 ** (p + 1))
    chosen = planes[number]
    inner, axis = _simple_rows(chosen, _patterns(p)[rest % 2**p])
    sign = np.where(rest < 2**p, 1.0, -1.0)
    rows[~old] = np.column_stack([chosen.reshape(-1, p * p), sign, axis, inner])
    return rows


def _by_a_plane(
    whole: NDArray[np.float64], k: int, chosen: NDArray[np.int64], on: NDArray[np.bool_], sides: Words
) -> tuple[Words, NDArray[np.float64]]:
    """The same for one plane that holds any number of points, by the rule inside it, and the rows: sign + first."""
    p = whole.shape[1]
    axis = int(_left_out(whole[chosen][None])[0])
    held = np.flatnonzero(on[:k])
    flat = whole[held][:, KEPT[p][axis]]
    order = np.lexsort(flat.T[::-1])
    inner_words, inner = separations(flat[order])
    labels = np.zeros((len(inner), k), dtype=np.uint8)
    labels[:, held[order]] = unpack(inner_words, len(held))
    rows = np.empty((2, len(inner), WIDTH[p]))
    rows[..., : p * p] = whole[chosen].ravel()
    rows[..., p * p] = np.array([[1.0], [-1.0]])
    rows[..., p * p + 1] = axis
    rows[..., p * p + 2 :] = inner
    words = sides[:, None] | pack(labels)
    return words.reshape(-1, words.shape[-1]), rows.reshape(-1, WIDTH[p])


def _left_out(planes: NDArray[np.float64]) -> NDArray[np.int64]:
    """The first coordinate in which the normal of each plane (L, p, p) is not zero: (L,)."""
    if planes.shape[1] == 2:
        return np.where(planes[:, 0, 1] != planes[:, 1, 1], 0, 1)
    first = np.full(len(planes), 2)
    for axis in (1, 0):
        kept = KEPT[3][axis]
        first[paired_signs(planes[:, :2, kept], planes[:, 2, kept]) != 0] = axis
    return first


def _simple_rows(
    planes: NDArray[np.float64], labels: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rule inside planes that hold no other points than their tuples (A, p, p), whose points have ``labels``
    (A, p): rows (A, WIDTH[p − 1]), and the coordinates left out (A,)."""
    p = planes.shape[1]
    axis = _left_out(planes)
    flat = np.take_along_axis(planes, KEPT[p][axis][:, None, :], axis=2)  # (A, p, p − 1)
    if p == 2:
        rows = np.where(labels == labels[:, ::-1], np.where(labels == 1, -np.inf, np.inf), flat[:, :, 0])
        swapped = labels[:, 0] > labels[:, 1]  # the point labelled 0 stands first
        rows[swapped] = rows[swapped, ::-1]
        return rows, axis
    # Three points that do not lie on a line: the line through the first two separates whatever their labels.
    order = np.lexsort((flat[:, :, 1], flat[:, :, 0]), axis=1)
    flat = np.take_along_axis(flat, order[:, :, None], axis=1)
    label = np.take_along_axis(labels, order, axis=1)
    turn = paired_signs(flat[:, :2], flat[:, 2])
    ends, end_axis = _simple_rows(flat[:, :2], label[:, :2])
    rows = np.column_stack([flat[:, :2].reshape(-1, 4), np.where(label[:, 2] == 1, turn, -turn), end_axis, ends])
    constant = (label == label[:, :1]).all(axis=1)
    rows[constant] = constants(2)[label[constant, 0]]
    return rows, axis


def predict(rows: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Labels of points (m, p) by each row: (M, m)."""
    p = points.shape[1]
    found = np.empty((len(rows), len(points)), dtype=np.uint8)
    kind = rows[:, p * p]
    found[kind == 0] = rows[kind == 0, -1:] < 0
    for i in np.flatnonzero(kind == NAMED):
        found[i] = _named(rows[i, :p], rows[i, p], points)
    cut = np.flatnonzero(np.abs(kind) == 1)
    length = max(1, BLOCK // max(1, len(points)))
    for start in range(0, len(cut), length):
        at = cut[start : start + length]
        side = signs(rows[at, : p * p].reshape(-1, p, p), points) * kind[at, None].astype(np.int8)
        labels = (side > 0).astype(np.uint8)
        r, c = np.nonzero(side == 0)
        labels[r, c] = _inside(rows[at[r]], points[c])
        found[at] = labels
    return found


def _inside(rows: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Labels of points on the planes, the i-th by the i-th row: (L, WIDTH[p]), (L, p) → (L,)."""
    p = points.shape[1]
    flat = np.take_along_axis(points, KEPT[p][rows[:, p * p + 1].astype(np.int64)], axis=1)
    inner = rows[:, p * p + 2 :]
    if p == 2:
        return _beside(flat[:, 0], inner[:, 0], inner[:, 1])
    kind = inner[:, 4]
    found = (inner[:, -1] < 0).astype(np.uint8)
    cut = np.flatnonzero(kind != 0)
    side = paired_signs(inner[cut, :4].reshape(-1, 2, 2), flat[cut]) * kind[cut].astype(np.int8)
    found[cut] = side > 0
    edge = cut[side == 0]
    found[edge] = _inside(inner[edge], flat[edge])
    return found


def _beside(x: NDArray[np.float64], z: NDArray[np.float64], o: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Whether x is nearer to o than to z, or midway: exactly, the sum z + o being carried with its rounding error."""
    with np.errstate(invalid="ignore"):
        total = z + o
        part = total - z
        error = np.where(np.isfinite(total), (z - (total - part)) + (o - part), 0.0)
    above = (2.0 * x > total) | ((2.0 * x == total) & (error <= 0))
    below = (2.0 * x < total) | ((2.0 * x == total) & (error >= 0))
    return np.asarray(np.where(o >= z, above, below), dtype=np.uint8)


def _named(w: NDArray[np.float64], b: float, points: NDArray[np.float64]) -> NDArray[np.uint8]:
    """1{w·x ≥ b}, exactly."""
    terms = points * w
    value, size = terms.sum(axis=1) - b, np.abs(terms).sum(axis=1) + abs(b)
    found = value > 0
    for i in np.flatnonzero(np.abs(value) <= 2.0**-50 * size):
        exact = sum(
            (Fraction(a) * Fraction(c) for a, c in zip(w.tolist(), points[i].tolist(), strict=True)), Fraction(0)
        )
        found[i] = exact >= Fraction(b)
    return found.astype(np.uint8)


def equations(rows: NDArray[np.float64], p: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """w and b of each row's boundary in floats, 1 where w·x − b is positive: (M, p), (M,). Constants have w = 0."""
    kind = rows[:, p * p]
    normals, offsets = np.zeros((len(rows), p)), rows[:, -1].copy()
    named = kind == NAMED
    normals[named], offsets[named] = rows[named, :p], rows[named, p]
    cut = np.abs(kind) == 1
    planes = rows[cut, : p * p].reshape(-1, p, p)
    edges = planes[:, 1:] - planes[:, :1]
    across = np.column_stack([-edges[:, 0, 1], edges[:, 0, 0]]) if p == 2 else np.cross(edges[:, 0], edges[:, 1])
    normals[cut] = across * kind[cut, None]
    offsets[cut] = (normals[cut] * planes[:, 0]).sum(axis=1)
    size = np.abs(normals).max(axis=1)
    size[size == 0] = 1.0
    return normals / size[:, None], offsets / size
