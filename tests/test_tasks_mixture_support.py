"""Sums over supports and the recursion: a sample's bits are its own, whatever it is computed together with."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from predcube.tasks.mixture import chances, recursion, support


def batch(seed: int, b: int, k: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    held = rng.multinomial(n, np.full(k, 1 / k), b)
    held[b // 2 :] = held[0]  # some occupy the points alike
    return rng.integers(0, n, (b, k + 1)).astype(np.float64), held


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 30), st.sampled_from([0.0, 0.1, 2.0, 300.0]))
def test_a_samples_weights_have_the_same_bits_alone_and_in_any_batch(seed: int, k: int, n: int, beta: float) -> None:
    losses, held = batch(seed, 6, k, n)
    size = 1 + seed % n
    together = support.additive(losses, held, subset_size=size, beta=beta)
    for b in range(6):
        alone = support.additive(losses[b : b + 1], held[b : b + 1], subset_size=size, beta=beta)
        assert alone[0].tobytes() == together[b].tobytes()
    backwards = support.additive(losses[::-1].copy(), held[::-1].copy(), subset_size=size, beta=beta)
    assert backwards[::-1].tobytes() == together.tobytes()
    np.testing.assert_allclose(np.exp(together).sum(axis=1), 1.0, atol=1e-12)
    assert (np.isneginf(together[:, 1:]) == (held[:, ::-1] == 0)).all()


@pytest.mark.parametrize("n", [1, 7, 979, 981, 4000])
def test_the_scale_keeps_every_coefficient_in_range(n: int) -> None:
    for size in {1, max(1, n // 10), max(1, n // 2), n}:
        scale = chances.scale_of(n, size)
        if scale.logs:
            assert scale.total == pytest.approx(math.log(math.comb(n, size)))
            continue
        assert math.frexp(scale.r)[0] == 0.5  # a power of two: scaling rounds nothing
        assert n * math.log1p(scale.r) <= chances.FITS
        assert size * -math.log(scale.r) <= chances.FITS
        assert math.log(scale.total) == pytest.approx(math.log(math.comb(n, size)) + size * math.log(scale.r))


def test_coefficients_in_logs_and_as_they_are_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    losses, held = batch(3, 4, 5, 40)
    plain = support.additive(losses, held, subset_size=9, beta=0.3)
    logs = chances.Scale(logs=True, r=1.0, total=math.log(math.comb(40, 9)))
    for module in (chances, support):
        monkeypatch.setattr(module, "scale_of", lambda n, size: logs)
    np.testing.assert_allclose(support.additive(losses, held, subset_size=9, beta=0.3), plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("held", [np.ones(30, dtype=np.int64), np.array([3, 1, 1, 7, 1, 2, 1, 1, 4])])
def test_the_recursion_has_the_same_bits_however_many_nodes_go_together(
    held: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch
) -> None:
    log_scale = np.random.default_rng(1).normal(size=len(held)) * 2
    tau, log_step = np.linspace(-9, 3, 45), np.full(45, -1.0)
    found: list[Any] = []
    for memory in (2**10, 2**14, 2**20):
        monkeypatch.setattr(recursion, "MEMORY", memory)
        logs, null = recursion.integrate(log_scale, held, 6, tau, log_step)
        found.append((logs.tobytes(), null))
    assert found[0] == found[1] == found[2]
    absolute, null = recursion.integrate(log_scale, held, 6, tau, log_step, relative=False)
    np.testing.assert_allclose(np.exp(absolute), np.exp(np.frombuffer(found[0][0])), rtol=0, atol=1e-15)
