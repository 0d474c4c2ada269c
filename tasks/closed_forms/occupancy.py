"""How many chunks of a sample hold a given point: in go chunk lengths, out come expectations over that number J.

Chunks are runs (or residue classes) of positions whose lengths differ by one at most. Two situations:

* every record falls on the point independently with probability w: the joint law of c, the records there, and J has
  the transform Π_j [(1−w)^m_j + e^{it}((1−w+we^{is})^m_j − (1−w)^m_j)], and ``with_count`` sums f(c)·g(J) in it;
* t positions, uniform without replacement, are taken: ``given_count`` follows J as they are taken one by one.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft

from predcube.tasks.closed_forms.counts import TAIL, Law, binomial, window


def sizes(n: int, chunks: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """(length, how many) of the longer and the shorter of r chunks of n positions.

    >>> sizes(8, 3)
    ((3, 2), (2, 1))
    """
    return (n // chunks + 1, n % chunks), (n // chunks, chunks - n % chunks)


def votes(n: int, chunks: int, voting: tuple[float, float]) -> Law:
    """The law of how many of r chunks vote, each by itself with the probability for its length, the longer first."""
    (_, more), (_, fewer) = sizes(n, chunks)
    first, second = (window(binomial(r, p)) for r, p in zip((more, fewer), voting, strict=True))
    return Law(start=first.start + second.start, p=np.convolve(first.p, second.p))


def holding(length: int, weight: float) -> float:
    """Pr[a chunk of ``length`` positions holds a point of probability ``weight``]."""
    return -math.expm1(length * math.log1p(-weight)) if weight < 1.0 else float(length > 0)


def with_count(n: int, chunks: int, weight: float, f: Law, g: NDArray[np.float64]) -> float:
    """E[f(c)·g(J)]: ``f`` holds p(c)·f(c)/p(c), that is, f at the counts of its window, outside of which c has
    probability below ``TAIL``; ``g`` (r + 1,) at J = 0 … r.

    Parseval over a grid of as many frequencies as both windows have integers: exact but for rounding (about 1e-13 of
    the largest |f·g|). Frequencies at which the transform is below ``TAIL`` are passed over.
    """
    (long, more), (short, fewer) = sizes(n, chunks)
    held = votes(n, chunks, (holding(long, weight), holding(short, weight)))
    inside = g[held.start : held.start + len(held.p)]
    s = 2.0 * np.pi * np.arange(len(f.p)) / len(f.p)
    t = 2.0 * np.pi * np.arange(len(inside)) / len(inside)
    of_f = fft(f.p) * np.exp(-1j * s * f.start)
    of_g = fft(inside) * np.exp(-1j * t * held.start)
    total = _parseval(
        _turned(long, weight, s),
        _turned(short, weight, s),
        holding(long, weight),
        holding(short, weight),
        more,
        fewer,
        -2.0 * np.sin(t / 2) ** 2 + 1j * np.sin(t),
        of_f,
        of_g,
        math.log(TAIL),
    )
    return float(total / (len(f.p) * len(inside)))


def _turned(length: int, weight: float, s: NDArray[np.float64]) -> NDArray[np.complex128]:
    """(1 − w + we^{is})^m − 1, to relative precision where it is small."""
    x, y = -2.0 * weight * np.sin(s / 2) ** 2, weight * np.sin(s)
    with np.errstate(divide="ignore"):
        size = length / 2 * np.log1p(np.maximum(2 * x + x * x + y * y, -1.0))
    angle = length * np.arctan2(y, 1.0 + x)
    return np.asarray(np.expm1(size) * np.cos(angle) - 2.0 * np.sin(angle / 2) ** 2 + 1j * np.exp(size) * np.sin(angle))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _parseval(
    long: NDArray[np.complex128],
    short: NDArray[np.complex128],
    held_long: float,
    held_short: float,
    more: int,
    fewer: int,
    turns: NDArray[np.complex128],
    of_f: NDArray[np.complex128],
    of_g: NDArray[np.complex128],
    least: float,
) -> float:
    """Σ over both frequencies of the transform times those of f and g: a real number, as f and g are real.

    A chunk's factor is 1 + z with z = (e^{it} − 1)(held + turned) + turned, whose logarithm is taken of z: 10^5 chunks
    would multiply what 1 + z loses. |1 + z| falls as t turns away from one angle, so only an arc is visited.
    """
    total = 0.0
    length = len(turns)
    step = 2.0 * math.pi / length
    for a in range(len(long)):
        many, held, turned = (more, held_long, long[a]) if more > fewer else (fewer, held_short, short[a])
        empty, filled = 1.0 - held, held + turned
        across = 2.0 * empty * abs(filled)
        reach = math.exp(2.0 * least / many) - empty**2 - abs(filled) ** 2 - 1e-12
        centre, half = 0, length
        if reach >= across:
            continue
        if reach > -across:
            centre = round(-math.atan2(filled.imag, filled.real) / step)
            half = int(math.acos(reach / across) / step) + 1
        first, count = (0, length) if 2 * half + 1 >= length else (centre - half, 2 * half + 1)
        row = 0.0
        for k in range(count):
            b = (first + k) % length
            size = angle = 0.0
            if more > 0:
                z = turns[b] * (held_long + long[a]) + long[a]
                size += more / 2 * math.log1p(max(2 * z.real + z.real**2 + z.imag**2, -1.0 + 1e-16))
                angle += more * math.atan2(z.imag, 1.0 + z.real)
            if fewer > 0:
                z = turns[b] * (held_short + short[a]) + short[a]
                size += fewer / 2 * math.log1p(max(2 * z.real + z.real**2 + z.imag**2, -1.0 + 1e-16))
                angle += fewer * math.atan2(z.imag, 1.0 + z.real)
            if size < least:
                continue
            product = of_f[a] * of_g[b]
            row += math.exp(size) * (math.cos(angle) * product.real - math.sin(angle) * product.imag)
        total += row
    return total


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def given_count(n: int, chunks: int, most: int, g: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[g(J)] for t = 0 … ``most`` positions of n taken uniformly without replacement: (most + 1,).

    After t of them, j1 of the longer and j2 of the shorter chunks held, the next falls into an empty longer chunk with
    probability (r1 − j1)(m + 1)/(n − t): a chain of positive terms over (j1, j2).
    """
    length = n // chunks
    more = n % chunks
    fewer = chunks - more
    found = np.empty(most + 1)
    chances = np.zeros((more + 1, fewer + 1))
    chances[0, 0] = 1.0
    for t in range(most + 1):
        mean = 0.0
        for i in range(more + 1):
            for j in range(fewer + 1):
                mean += chances[i, j] * g[i + j]
        found[t] = mean
        if chances[more, fewer] > 1.0 - 1e-16:
            found[t:] = g[chunks]
            break
        if t == most:
            break
        # From the fullest down, so that each state is read before it is written.
        for i in range(more, -1, -1):
            for j in range(fewer, -1, -1):
                into_long = (more - i) * (length + 1.0) / (n - t)
                into_short = (fewer - j) * float(length) / (n - t)
                stay = chances[i, j] * max(1.0 - into_long - into_short, 0.0)
                if i > 0:
                    stay += chances[i - 1, j] * (more - i + 1) * (length + 1.0) / (n - t)
                if j > 0:
                    stay += chances[i, j - 1] * (fewer - j + 1) * float(length) / (n - t)
                chances[i, j] = stay
    return found
