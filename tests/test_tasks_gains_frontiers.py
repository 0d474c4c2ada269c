"""Noise that reaches a target, per scheme: the value it leaves, the least amount, and what it costs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from predcube.tasks import noises, processes, releases
from predcube.tasks.frames import Frame, total_of
from predcube.tasks.frontiers import frontier, noise_for
from predcube.tasks.gains import Gains, Measure

NONE = noises.build("none")
SCHEMES = [
    "isotropic",
    "calibrated",
    "rank_one",
    noises.build("gaussian", epsilon=1.0, delta=1e-5, sensitivity=0.02),
    noises.build("laplace", epsilon=1.0, sensitivity=0.02),
]


def gains_of(seed=0, queries=1, kind="linear", process=None, rows=300):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3)) @ np.diag([1.0, 5.0, 0.2])
    y = x @ [1.0, 0.2, 2.0] + rng.normal(size=rows)
    q = (x[:, :queries] + y[:, None] + rng.normal(size=(rows, queries)) > 0).astype(float)
    frame = Frame(queries=q, inputs=np.hstack([y[:, None], x]))
    release = {
        "linear": releases.build("linear", target="y", features=["a", "b", "c"]),
        "mean": releases.build("mean", columns=["y", "a", "b", "c"]),
        "stack": releases.build(
            "stack",
            releases=[{"kind": "mean", "columns": ["y", "a"]}, {"kind": "mean", "columns": ["b", "c"]}],
        ),
    }[kind]
    process = process or processes.build("random_shard", fraction=0.2)
    total = total_of([frame])
    fitted = release.fit(total)
    return Gains(law=process.law(total(process.request(fitted))), coordinates=fitted), process


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("kind", ["linear", "mean", "stack"])
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: getattr(s, "kind", s))
def test_the_noise_found_reaches_the_target_and_less_does_not(scheme, kind, loss):
    gains, process = gains_of(kind=kind)
    measure = Measure(loss=loss)
    bare = float(gains.values(process, NONE, measure).sharp[0])
    for share in (0.999, 0.5, 0.01, 1e-6):
        found = noise_for(gains, process, measure, share * bare, scheme)
        assert found.sharp == pytest.approx(share * bare, rel=1e-9)
        total = gains.covariance(process, found.noise, measure)
        at = gains.coordinates
        utility = np.eye(4) if at.gram is None else at.units.T @ at.gram @ at.units
        assert found.utility_cost == pytest.approx(np.trace(utility @ total), rel=1e-9)
        less = {
            "isotropic": lambda n: replace(n, sd=n.sd * 0.99),
            "calibrated": lambda n: replace(n, level=n.level * 0.99),
            "rank_one": lambda n: replace(n, gain=n.gain * 1.0001),
            "gaussian": lambda n: replace(n, epsilon=n.epsilon * 1.02),
            "laplace": lambda n: replace(n, epsilon=n.epsilon * 1.01),
        }[found.scheme](found.noise)
        assert gains.values(process, less, measure).sharp[0] > share * bare


def test_closed_forms():
    gains, process = gains_of()
    bare = float(gains.values(process, NONE, Measure()).sharp[0])
    assert noise_for(gains, process, Measure(), bare / 4, "calibrated").noise.level == pytest.approx(3, rel=1e-12)
    assert noise_for(gains, process, Measure(), bare / 4, "rank_one").noise.gain == bare / 4
    found = noise_for(gains, process, Measure(), bare / 4, "isotropic").noise.sd

    def excess(sd):
        return gains.values(process, noises.build("isotropic", sd=sd), Measure()).sharp[0] - bare / 4

    assert found == pytest.approx(optimize.bisect(excess, 1e-6, 1e6, xtol=1e-15, maxiter=200), rel=1e-9)


def test_no_noise_of_one_query_is_cheaper_than_rank_one_on_what_it_is_made_for():
    """Among all noise that leaves the gain t, rank-one noise has the least total covariance in units of Var ψ."""
    gains, process = gains_of(seed=3, kind="mean")
    bare = float(gains.values(process, NONE, Measure()).sharp[0])
    inverse = np.linalg.inv(gains.law.variance)
    costs = {}
    for scheme in ("rank_one", "calibrated", "isotropic"):
        noise = noise_for(gains, process, Measure(), bare / 5, scheme).noise
        costs[scheme] = np.trace(inverse @ gains.covariance(process, noise, Measure()))
    assert costs["rank_one"] < costs["calibrated"]
    assert costs["rank_one"] < costs["isotropic"]


def test_several_queries_are_all_brought_to_the_target():
    gains, process = gains_of(queries=3)
    for scheme in ("isotropic", "calibrated"):
        bare = gains.values(process, NONE, Measure()).sharp
        found = noise_for(gains, process, Measure(), float(bare.min()) / 2, scheme)
        left = gains.values(process, found.noise, Measure()).sharp
        assert left.max() == pytest.approx(bare.min() / 2, rel=1e-9)
        assert left.max() <= bare.min() / 2 * (1 + 1e-12)
    with pytest.raises(ValueError, match="hides one query, and there are 3"):
        noise_for(gains, process, Measure(), float(bare.min()) / 2, "rank_one")


def test_paper_convention_needs_more_noise():
    gains, process = gains_of()
    bare = float(gains.values(process, NONE, Measure()).sharp[0])
    right = noise_for(gains, process, Measure(), bare / 3, "isotropic")
    printed = noise_for(gains, process, Measure(convention="paper"), bare / 3, "isotropic")
    assert printed.noise.sd == pytest.approx(right.noise.sd * np.sqrt(process.factors(gains.law).m), rel=1e-9)


def test_a_target_that_is_met_already_or_out_of_reach_gets_one_message():
    gains, process = gains_of()
    bare = float(gains.values(process, NONE, Measure()).sharp[0])
    for scheme in SCHEMES:
        with pytest.raises(ValueError, match="without noise the sharp value is"):
            noise_for(gains, process, Measure(), bare, scheme)
        for bad in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match="must be a number above 0"):
                noise_for(gains, process, Measure(), bad, scheme)
    hair = float(np.nextafter(bare, 0))
    assert noise_for(gains, process, Measure(), hair, "isotropic").sharp == pytest.approx(bare, rel=1e-12)
    with pytest.raises(ValueError, match="more isotropic noise than a number can hold"):
        noise_for(gains, process, Measure(), 1e-310, "isotropic")
    for name in ("gaussian", "laplace"):
        with pytest.raises(ValueError, match="needs its sensitivity"):
            noise_for(gains, process, Measure(), bare / 2, name)
    with pytest.raises(ValueError, match="no noise of scheme 'isotropc'"):
        noise_for(gains, process, Measure(), bare / 2, "isotropc")
    gaussian = noises.build("gaussian", epsilon=1.0, delta=0.9, sensitivity=1e-9)
    with pytest.raises(ValueError, match=r"\(0, 0\.9\)-DP"):
        noise_for(gains, process, Measure(), bare / 100, gaussian)

    # A number that the noise on λ does not move: its own gain stays.
    class Blind:
        curvature = np.diag([0.0, 0.0, 0.0, 1.0])
        units = released = np.eye(4)
        fixed = np.zeros((0, 4))
        stretch, blurred = 1.0, False
        gram = None
        members = (4,)

    with pytest.raises(ValueError, match="out of reach of isotropic noise: however large, it leaves"):
        noise_for(Gains(law=gains.law, coordinates=Blind()), process, Measure(), bare / 100, "isotropic")


def test_a_frontier_costs_more_the_lower_its_target():
    gains, process = gains_of(seed=5)
    bare = float(gains.values(process, NONE, Measure()).sharp[0])
    targets = [bare * share for share in (0.9, 0.5, 0.1, 0.01)]
    found = frontier(gains, process, Measure(), targets)
    assert [(r.scheme, r.target) for r in found[:5]] == [("isotropic", t) for t in targets] + [
        ("calibrated", targets[0])
    ]
    for scheme in ("isotropic", "calibrated", "rank_one"):
        costs = [r.utility_cost for r in found if r.scheme == scheme]
        assert len(costs) == 4
        assert costs == sorted(costs)
        assert costs[0] < costs[-1]
