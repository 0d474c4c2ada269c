"""Laws of breach processes against enumeration of every draw, and against long-run covariances of rows."""

import json
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from predcube.tasks import processes
from predcube.tasks.frames import Frame, Groups, total_of
from predcube.tasks.processes import Law


@dataclass(frozen=True)
class Means:
    """A release of means: g = x − mean x."""

    centre: np.ndarray

    def moments(self, inputs):
        return inputs - self.centre


def table(rng, rows, queries=2, moments=2):
    x = rng.normal(size=(rows, queries + moments)) @ rng.normal(size=(queries + moments, queries + moments)) + 3
    return x[:, :queries], x[:, queries:]


def law_of(process, q, x, column=None, target=None, groups=None, cuts=(), joint=True):
    edges = [0, *cuts, len(q)]
    frames = [
        Frame(
            queries=q[a:b],
            inputs=x[a:b],
            column=None if column is None else column[a:b],
            target=None if target is None else target[a:b],
        )
        for a, b in pairwise(edges)
    ]
    fitted = Means(x.mean(axis=0))
    state = total_of(frames)(process.request(fitted, groups, joint=joint))
    return process.law(state, groups)


def centred(q, x):
    return np.hstack([q - q.mean(axis=0), x - x.mean(axis=0)])


def close(found: Law, expected, tolerance=1e-11):
    size = len(found.p)
    scale = np.sqrt(np.diag(expected)) + 1e-300
    assert np.abs((found.covariance - expected) / np.outer(scale, scale)).max() < tolerance
    assert np.allclose(found.s1, np.diag(expected)[:size], rtol=tolerance)


def test_iid_is_the_covariance_of_a_mean_of_all_pairs_drawn():
    """All 6² draws of two rows with replacement: the covariance of their mean is V/n."""
    rng = np.random.default_rng(0)
    q, x = table(rng, 6)
    process = processes.build("iid", size=2)
    rows = centred(q, x)
    means = np.array([rows[list(pair)].mean(axis=0) for pair in product(range(6), repeat=2)])
    law = law_of(process, q, x, cuts=(2,))
    close(law, means.T @ means / len(means) / process.factors(law).K)
    assert np.allclose(law.p, q.mean(axis=0), rtol=1e-14)
    assert process.factors(law) == processes.Factors(n=2, m=2, K=0.5)


def test_weighted_is_the_covariance_of_the_weighted_mean_of_all_pairs_drawn():
    rng = np.random.default_rng(1)
    q, x = table(rng, 6)
    c = rng.lognormal(0, 1, 6)
    process = processes.build("weighted", column="c", size=2)
    chance = c / c.sum()
    rows = centred(q, x) / (6 * chance)[:, None]
    expected = np.zeros((4, 4))
    for i, j in product(range(6), repeat=2):
        mean = (rows[i] + rows[j]) / 2
        expected += chance[i] * chance[j] * np.outer(mean, mean)
    law = law_of(process, q, x, column=c, cuts=(1, 4))
    close(law, expected / process.factors(law).K)
    assert np.allclose(law.p, q.mean(axis=0), rtol=1e-13)


def subsets(rows, n):
    return np.array([[i in chosen for i in range(rows)] for chosen in combinations(range(rows), n)])


@pytest.mark.parametrize("n", [1, 3, 6])
def test_random_shard_is_the_covariance_over_all_subsets(n):
    """Errors of the sample mean about the mean of all rows and about the mean of the unseen ones, over all C(7, n)."""
    rng = np.random.default_rng(2)
    q, x = table(rng, 7)
    rows = centred(q, x)
    seen = subsets(7, n)
    mean = seen @ rows / n
    unseen = ~seen @ rows / (7 - n)
    for target, error in (("all", mean), ("unseen", mean - unseen)):
        process = processes.build("random_shard", size=n, target=target)
        law = law_of(process, q, x, cuts=(3, 5))
        factors = process.factors(law)
        close(law, error.T @ error / len(seen) / factors.K)
        assert factors.n == n
        # noise enters the error of the mean as S_tot, in units of 1/m of the law's
        close(law, mean.T @ mean / len(seen) * factors.m)


def test_random_shard_without_the_finite_correction_fails_at_small_n():
    """Erratum 16."""
    q, x = table(np.random.default_rng(2), 7)
    seen = subsets(7, 3)
    mean = seen @ centred(q, x) / 3
    law = law_of(processes.build("random_shard", size=3, target="all"), q, x)
    exact = (mean.T @ mean)[0, 0] / len(seen)
    assert exact == pytest.approx(law.s1[0] * (1 - 3 / 7) / 3, rel=1e-12)
    assert exact != pytest.approx(q[:, 0].var() * (1 - 3 / 7) / 3, rel=0.1)


def test_a_target_law_is_the_covariance_over_all_subsets():
    """(N/N')·(mean of 1{D'}(q − p) over the subset) estimates p to first order; g as for all rows."""
    rng = np.random.default_rng(3)
    q, x = table(rng, 9)
    inside = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1], dtype=bool)
    p = q[inside].mean(axis=0)
    rows = np.hstack([(9 / 5) * inside[:, None] * (q - p), x - x.mean(axis=0)])
    seen = subsets(9, 4)
    mean = seen @ rows / 4
    process = processes.build("random_shard", size=4, target="d")
    law = law_of(process, q, x, target=inside, cuts=(2, 4, 6))
    factors = process.factors(law)
    close(law, mean.T @ mean / len(seen) / factors.K)
    assert np.allclose(law.p, p, rtol=1e-13)
    assert (law.rows, law.members) == (9, 5)
    unseen = processes.build("random_shard", size=4, target="d", members="unseen").factors(law)
    assert [f.K for f in (factors, unseen)] == pytest.approx([(5 / 9) / 4, 1 / ((5 / 9) * 4)])
    assert factors.m == unseen.m == pytest.approx(4 / (5 / 9))
    # Erratum 14: with w and w' swapped, the query's weighted moment has not mean 0 under the process.
    assert np.abs(rows[:, :2].mean(axis=0)).max() < 1e-12
    assert np.abs((q - p).mean(axis=0)).max() > 0.05


def test_a_target_that_is_everyone_is_the_plain_law():
    q, x = table(np.random.default_rng(4), 40)
    everyone = law_of(
        processes.build("random_shard", size=4, target="d"), q, x, target=np.ones(40, dtype=bool), cuts=(7,)
    )
    plain = law_of(processes.build("random_shard", size=4, target="all"), q, x)
    close(everyone, plain.covariance)


def test_poisson_is_the_covariance_over_all_inclusions():
    """Horvitz–Thompson means of centred rows over all 2⁸ inclusions, one row being included always."""
    rng = np.random.default_rng(5)
    q, x = table(rng, 8)
    pi = np.append(rng.uniform(0.1, 0.9, 7), 1.0)
    rows = centred(q, x)
    expected = np.zeros((4, 4))
    for included in product((0, 1), repeat=8):
        i = np.array(included)
        mean = (i / pi) @ rows / 8
        expected += np.prod(np.where(i, pi, 1 - pi)) * np.outer(mean, mean)
    every = processes.build("poisson", column="pi", target="all")
    law = law_of(every, q, x, column=pi, cuts=(7,))
    # the sum of all rows is fixed: the mean's error is Σ(I/π − 1)x/N, whose mean square is taken above
    expected -= np.outer(rows.mean(axis=0), rows.mean(axis=0))
    close(law, expected / every.factors(law).K)
    factors = processes.build("poisson", column="pi").factors(law)
    assert factors.m == 8
    assert [factors.n, factors.K] == pytest.approx([pi.sum(), 1 / (8 * (1 - pi.mean()) ** 2)])


def test_poisson_of_one_chance_is_nearly_a_random_shard():
    q, x = table(np.random.default_rng(6), 2000)
    poisson = processes.build("poisson", column="pi")
    shard = processes.build("random_shard", fraction=0.3)
    one = law_of(poisson, q, x, column=np.full(2000, 0.3))
    two = law_of(shard, q, x)
    assert np.allclose(one.s1 * poisson.factors(one).K, two.s1 * shard.factors(two).K, rtol=1e-3)
    assert np.allclose(one.variance / poisson.factors(one).m, two.variance / shard.factors(two).m, rtol=1e-3)


def test_whole_shards_is_the_covariance_over_all_sets_of_shards():
    """Totals of centred rows of k of 6 unequal shards, over all C(6, k) of them."""
    rng = np.random.default_rng(7)
    q, x = table(rng, 30)
    codes = np.array([0, 0, 1, 2, 3, 4, 5] + [5] * 10 + [1] * 6 + [2] * 7, dtype=float)
    rng.shuffle(codes)
    groups = Groups(labels=tuple("abcdef"), counts=np.bincount(codes.astype(int)))
    rows = centred(q, x)
    totals = np.array([rows[codes == j].sum(axis=0) for j in range(6)])
    seen = subsets(6, 2)
    mean = (6 / 30) * (seen @ totals) / 2
    every = processes.build("whole_shards", column="s", count=2, target="all")
    law = law_of(every, q, x, column=codes, groups=groups, cuts=(4, 5, 20))
    close(law, mean.T @ mean / len(seen) / every.factors(law).K)
    factors = processes.build("whole_shards", column="s", count=2).factors(law)
    assert (factors.n, factors.m, factors.K) == pytest.approx((10, 3, 1 / ((2 / 3) * 2)))
    assert law.flags == ("few_shards",)
    assert law.groups == 6
    # Shard means in place of totals are wrong where sizes differ.
    averages = totals / groups.counts[:, None]
    assert averages[:, 0].var(ddof=1) != pytest.approx(law.s1[0], rel=0.3)


def test_shards_of_one_row_each_are_a_random_shard():
    q, x = table(np.random.default_rng(8), 120)
    groups = Groups(labels=tuple(f"{i:03d}" for i in range(120)), counts=np.ones(120, dtype=int))
    shards = law_of(processes.build("whole_shards", column="s", count=9), q, x, column=np.arange(120.0), groups=groups)
    rows = law_of(processes.build("random_shard", size=9), q, x)
    close(shards, rows.covariance)
    assert shards.flags == ()


def test_shards_whose_totals_agree_leave_nothing_to_gain():
    """Every shard holds the same rows: what is left of their totals is rounding."""
    rng = np.random.default_rng(9)
    q, x = table(rng, 20)
    orders = [rng.permutation(20) for _ in range(5)]  # so that their sums differ in the last digit
    q, x = (np.concatenate([columns[order] for order in orders]) for columns in (q, x))
    codes = np.repeat(np.arange(5.0), 20)
    groups = Groups(labels=tuple("abcde"), counts=np.full(5, 20))
    law = law_of(processes.build("whole_shards", column="s", count=2), q, x, column=codes, groups=groups)
    assert np.all(law.covariance == 0)
    assert not law.constant.any()


CHAIN = {
    "labels": ["b", "a", "c"],
    "matrix": [[0.85, 0.1, 0.05], [0.2, 0.8, 0.0], [0.3, 0.1, 0.6]],
}


def rows_of_chain(rng):
    q, x = table(rng, 12)
    names = np.array(list("aabbbbcccccc"))
    rng.shuffle(names)
    groups = Groups.of(names)
    order = [CHAIN["labels"].index(label) for label in groups.labels]
    transitions = np.array(CHAIN["matrix"])[np.ix_(order, order)]
    return q, x, groups.codes(names), groups, transitions


def row_chain(codes, groups, transitions):
    """The chain as one over rows: its transitions, its stationary law by eigenvectors, and w."""
    state = codes.astype(int)
    step = transitions[np.ix_(state, state)] / groups.counts[state][None, :]
    values, vectors = np.linalg.eig(step.T)
    law = np.real(vectors[:, np.argmax(np.real(values))])
    law = law / law.sum()
    return step, law, 1 / (len(law) * law)


def long_run(step, law, f):
    """S0 + A + Aᵀ of a chain over rows, by its fundamental matrix."""
    size = len(law)
    z = np.linalg.inv(np.eye(size) - step + np.outer(np.ones(size), law))
    lagged = f.T @ (law[:, None] * ((z - np.eye(size)) @ f))
    return f.T @ (law[:, None] * f) + lagged + lagged.T


def test_markov_is_the_long_run_covariance_of_its_rows():
    q, x, codes, groups, transitions = rows_of_chain(np.random.default_rng(10))
    step, law, w = row_chain(codes, groups, transitions)
    process = processes.build("markov", column="s", steps=50, transitions=CHAIN)
    found = law_of(process, q, x, column=codes, groups=groups, cuts=(3, 7))
    close(found, long_run(step, law, w[:, None] * centred(q, x)))
    assert np.allclose(found.p, q.mean(axis=0), rtol=1e-13)
    assert found.groups == 3
    assert process.factors(found) == processes.Factors(n=50, m=50, K=1 / 50)


def test_markov_is_the_covariance_of_a_mean_over_many_steps():
    """n·Cov(mean of n steps) = Γ_0 + Σ(1 − k/n)(Γ_k + Γ_kᵀ), summed step by step, tends to it like 1/n."""
    q, x, codes, groups, transitions = rows_of_chain(np.random.default_rng(11))
    step, law, w = row_chain(codes, groups, transitions)
    found = law_of(processes.build("markov", column="s", steps=9, transitions=CHAIN), q, x, column=codes, groups=groups)
    f = w[:, None] * centred(q, x)
    errors = []
    for n in (1000, 2000):
        total, later = f.T @ (law[:, None] * f), f
        for k in range(1, n):
            later = step @ later
            lagged = f.T @ (law[:, None] * later)
            total = total + (1 - k / n) * (lagged + lagged.T)
        errors.append(np.abs(total - found.covariance).max() / np.abs(total).max())
    assert errors[0] < 0.02
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.02)


def test_the_variance_of_one_step_is_not_conservative():
    """Erratum 11: a chain that stays put, and a query that follows it."""
    labels = ["0", "1"]
    sticky = {"labels": labels, "matrix": [[0.97, 0.03], [0.03, 0.97]]}
    rng = np.random.default_rng(12)
    codes = np.repeat([0.0, 1.0], 50)
    q = (codes + (rng.random(100) < 0.1))[:, None] % 2
    groups = Groups(labels=("0", "1"), counts=np.array([50, 50]))
    law = law_of(processes.build("markov", column="s", steps=9, transitions=sticky), q, q, column=codes, groups=groups)
    assert law.s1[0] > 15 * q.var()


def test_a_markov_chain_that_forgets_is_weighted_sampling():
    """Equal rows of transitions: steps are independent draws with D = π_s/n_s."""
    q, x, codes, groups, _ = rows_of_chain(np.random.default_rng(13))
    pi = np.array([0.5, 0.2, 0.3])
    chain = {"labels": list(groups.labels), "matrix": [pi.tolist()] * 3}
    markov = law_of(
        processes.build("markov", column="s", steps=9, transitions=chain), q, x, column=codes, groups=groups
    )
    chance = (pi / groups.counts)[codes.astype(int)]
    close(markov, law_of(processes.build("weighted", column="c", size=9), q, x, column=chance).covariance)


def test_steps_that_cancel_leave_nothing_to_gain():
    """Two states in turn, and a query that is the state: over two steps its mean is known."""
    turn = {"labels": ["0", "1"], "matrix": [[0.0, 1.0], [1.0, 0.0]]}
    codes = np.repeat([0.0, 1.0], 30)
    groups = Groups(labels=("0", "1"), counts=np.array([30, 30]))
    x = np.random.default_rng(14).normal(size=(60, 1))
    law = law_of(
        processes.build("markov", column="s", steps=9, transitions=turn), codes[:, None], x, column=codes, groups=groups
    )
    assert law.s1[0] == 0
    assert np.all(law.cross == 0)


def test_a_stationary_law_of_rare_states_is_right_to_relative_precision():
    """A birth–death chain whose law is a geometric sequence over 12 states, down to 1e-22."""
    size, up = 12, 0.01
    matrix = np.zeros((size, size))
    for i in range(size):
        matrix[i, min(i + 1, size - 1)] += up * 0.5
        matrix[i, max(i - 1, 0)] += 0.5
        matrix[i, i] += 0.5 - up * 0.5
    chain = processes.markov.Transitions.of({"labels": [f"{i:02d}" for i in range(size)], "matrix": matrix.tolist()})
    expected = up ** np.arange(size)
    assert np.allclose(chain.stationary, expected / expected.sum(), rtol=1e-12)
    slow = processes.markov.Transitions.of({"labels": ["a", "b"], "matrix": [[1 - 1e-12, 1e-12], [3e-12, 1 - 3e-12]]})
    assert np.allclose(slow.stationary, [0.75, 0.25], rtol=1e-14)


@pytest.mark.parametrize("kind", ["weighted", "poisson", "markov"])
def test_a_known_weight_is_residualised(kind):
    """Erratum 17: the moment w − 1 (for Poisson inclusion, of a column of ones) is known, and projected off."""
    rng = np.random.default_rng(15)
    if kind == "weighted":
        q, x = table(rng, 40)
        column, groups, more = rng.lognormal(0, 1, 40), None, {"column": "c", "size": 5}
        w = column.sum() / (40 * column)
        rows = np.hstack([w[:, None] * centred(q, x), (w - 1)[:, None]])
        whole = rows.T @ ((column / column.sum())[:, None] * rows)
    elif kind == "poisson":
        q, x = table(rng, 40)
        column, groups, more = rng.uniform(0.1, 1, 40), None, {"column": "pi"}
        rows = np.hstack([centred(q, x), np.ones((40, 1))])
        whole = rows.T @ (((1 - column) / column)[:, None] * rows) / 40
    else:
        q, x, column, groups, transitions = rows_of_chain(rng)
        step, law, w = row_chain(column, groups, transitions)
        whole = long_run(step, law, np.hstack([w[:, None] * centred(q, x), (w - 1)[:, None]]))
        more = {"column": "s", "steps": 5, "transitions": CHAIN}
    expected = whole[:-1, :-1] - np.outer(whole[:-1, -1], whole[-1, :-1]) / whole[-1, -1]
    close(law_of(processes.build(kind, aux_moments=["w"], **more), q, x, column=column, groups=groups), expected)
    plain = law_of(processes.build(kind, **more), q, x, column=column, groups=groups)
    close(plain, whole[:-1, :-1])
    assert np.all(np.diag(plain.covariance) > np.diag(expected) * (1 + 1e-6))


def test_equal_weights_know_nothing_more():
    q, x = table(np.random.default_rng(16), 30)
    known = law_of(processes.build("weighted", column="c", size=5, aux_moments=["w"]), q, x, column=np.full(30, 0.1))
    close(known, law_of(processes.build("iid", size=5), q, x).covariance)


@pytest.mark.parametrize("kind", ["iid", "weighted", "random_shard", "target", "poisson", "whole_shards", "markov"])
def test_any_cut_gives_one_law_with_or_without_joint(kind):
    rng = np.random.default_rng(17)
    q, x = table(rng, 300)
    q = q * [1.0, 1e6] + [1e9, 0.0]
    codes = rng.integers(0, 3, 300).astype(float)
    groups = Groups(labels=("a", "b", "c"), counts=np.bincount(codes.astype(int)))
    more, column, target = {
        "iid": ({"size": 5}, None, None),
        "weighted": ({"column": "c", "size": 5}, rng.lognormal(0, 1, 300), None),
        "random_shard": ({"size": 5}, None, None),
        "target": ({"size": 5, "target": "d"}, None, rng.random(300) < 0.2),
        "poisson": ({"column": "pi"}, rng.uniform(0.1, 1, 300), None),
        "whole_shards": ({"column": "s", "count": 2}, codes, None),
        "markov": ({"column": "s", "steps": 9, "transitions": CHAIN}, codes, None),
    }[kind]
    process = processes.build("random_shard" if kind == "target" else kind, **more)
    whole = law_of(process, q, x, column=column, target=target, groups=groups)
    scale = np.sqrt(np.concatenate([whole.s1, np.diag(whole.variance)]))
    for cuts in ((1, 2, 3), (150,), tuple(range(10, 300, 10))):
        cut = law_of(process, q, x, column=column, target=target, groups=groups, cuts=cuts, joint=False)
        assert np.abs((cut.cross - whole.cross) / np.outer(scale[:2], scale[2:])).max() < 1e-12
        assert np.abs((cut.variance - whole.variance) / np.outer(scale[2:], scale[2:])).max() < 1e-12
        assert np.abs(cut.s1 / whole.s1 - 1).max() < 1e-12
    if kind != "whole_shards":
        with pytest.raises(ValueError, match="joint=True"):
            _ = cut.covariance


def test_a_law_does_not_depend_on_how_much_is_drawn_and_is_stored_as_plain_values():
    q, x = table(np.random.default_rng(18), 30)
    processes_of_one_law = [processes.build("random_shard", fraction=f) for f in (0.1, 0.5)]
    assert len({json.dumps(p.key) for p in processes_of_one_law}) == 1
    assert processes.build("random_shard", size=3, target="d").key != processes_of_one_law[0].key
    law = law_of(processes_of_one_law[0], q, x)
    arrays, facts = law.pack()
    again = Law.unpack(arrays, json.loads(json.dumps(facts)))
    for name in Law.__slots__:
        assert np.array_equal(getattr(again, name), getattr(law, name)), name
    assert json.loads(json.dumps(processes.build("markov", column="s", steps=2, transitions=CHAIN).key))


@pytest.mark.parametrize(
    ("fraction", "rows", "n"), [(0.29, 100, 29), (0.3, 1566, 470), (0.1, 30, 3), (0.5, 7, 4), (1e-3, 5000, 5)]
)
def test_a_fraction_is_the_decimal_that_was_written(fraction, rows, n):
    assert processes.build("random_shard", fraction=fraction).drawn(rows) == n


GROUPS = Groups(labels=("a", "b", "c"), counts=np.array([2, 3, 4]))


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("random_shard", {"size": 9}, "n = 9 of 9 complete rows is not between 1 and 8"),
        ("random_shard", {"fraction": 0.01}, "n = 0 of 9"),
        ("random_shard", {"fraction": 0.99}, "n = 9 of 9"),
        ("whole_shards", {"column": "s", "count": 3}, "count = 3 of 3 shards in column 's' is not between 1 and 2"),
        (
            "markov",
            {"column": "s", "steps": 2, "transitions": {"labels": ["a", "d"], "matrix": [[0.5, 0.5]] * 2}},
            "'d'",
        ),
        (
            "markov",
            {"column": "s", "steps": 2, "transitions": {"labels": ["a", "b"], "matrix": [[0.5, 0.5]] * 2}},
            "column 's' holds the state 'c', which transitions do not name",
        ),
    ],
)
def test_what_cannot_be_drawn_is_infeasible(kind, more, message):
    assert message in processes.build(kind, **more).infeasible(9, GROUPS)


@pytest.mark.parametrize("kind", ["iid", "weighted", "poisson"])
def test_one_row_is_too_few(kind):
    more = {"iid": {"size": 3}, "weighted": {"column": "c", "size": 3}, "poisson": {"column": "c"}}[kind]
    assert "at least 2" in processes.build(kind, **more).infeasible(1)
    assert processes.build(kind, **more).infeasible(2) is None


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("iid", {"size": 0}, "iid: size = 0 must be at least 1"),
        (
            "iid",
            {"size": 5, "target": "unseen"},
            "target = 'unseen' has no meaning where rows are drawn with replacement",
        ),
        ("weighted", {"column": "c", "size": 5, "target": "unseen"}, "has no meaning"),
        ("markov", {"column": "c", "steps": 5, "transitions": CHAIN, "target": "unseen"}, "has no meaning"),
        ("poisson", {"column": "c", "target": "age > 3"}, "only random_shard takes as a law D'"),
        ("whole_shards", {"column": "c", "count": 3, "target": "age > 3"}, "which only random_shard takes"),
        ("random_shard", {}, "needs fraction or size"),
        ("random_shard", {"fraction": 0.3, "size": 3}, "needs fraction or size"),
        ("random_shard", {"fraction": 1.0}, "must be below 1"),
        ("random_shard", {"size": 3, "members": "unseen"}, "for a target that is an expression"),
        ("random_shards", {}, "did you mean 'random_shard'"),
        ("iid", {"size": 5, "fraction": 0.3}, "takes no parameter 'fraction'"),
        ("weighted", {"column": "c", "size": 5, "aux_moments": ["v"]}, "must be \\[\\] or \\['w'\\]"),
        ("whole_shards", {"column": "c", "count": 2, "aux_moments": ["w"]}, "takes no parameter 'aux_moments'"),
        ("markov", {"column": "c", "steps": 2, "transitions": 3}, "must be a table"),
        (
            "markov",
            {"column": "c", "steps": 2, "transitions": {"labels": ["a"], "matrix": 5}},
            "transitions.matrix = 5 must be a list",
        ),
        (
            "markov",
            {"column": "c", "steps": 2, "transitions": {"labels": "ab", "matrix": [[1]]}},
            "transitions.labels = 'ab' must be a list",
        ),
        ("markov", {"column": "c", "steps": 2, "transitions": {"labels": ["a"], "matrix": [["x"]]}}, "rows of numbers"),
        ("markov", {"column": "c", "steps": 2, "transitions": {"labels": ["a", "b"], "matrix": [[1.0]]}}, "2 × 2"),
        (
            "markov",
            {"column": "c", "steps": 2, "transitions": {"labels": ["a", "b"], "matrix": [[0.5, 0.4], [0.5, 0.5]]}},
            "transitions of state 'a' sum to 0.9, not to 1",
        ),
        (
            "markov",
            {"column": "c", "steps": 2, "transitions": {"labels": ["a", "b"], "matrix": [[1.5, -0.5], [0.5, 0.5]]}},
            "not a probability",
        ),
        (
            "markov",
            {"column": "c", "steps": 2, "transitions": {"labels": ["a", "b"], "matrix": [[0.5, 0.5], [0.0, 1.0]]}},
            "'a' and 'b' do not both lead to each other",
        ),
        (
            "markov",
            {"column": "c", "steps": 2, "transitions": {"labels": ["a", "a"], "matrix": [[0.5, 0.5], [0.5, 0.5]]}},
            "name the state 'a' twice",
        ),
    ],
)
def test_refusals(kind, more, message):
    with pytest.raises(ValueError, match=message):
        processes.build(kind, **more)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_a_weight_must_be_above_zero(bad):
    q, x = table(np.random.default_rng(19), 5)
    column = np.array([1.0, 2.0, bad, 1.0, 1.0])
    with pytest.raises(ValueError, match="column 'c' holds the weight"):
        law_of(processes.build("weighted", column="c", size=2), q, x, column=column)


def test_inclusion_probabilities_are_probabilities_and_not_all_one():
    q, x = table(np.random.default_rng(20), 5)
    poisson = processes.build("poisson", column="pi")
    for bad in (0.0, 1.2, -0.1):
        with pytest.raises(ValueError, match="inclusion probability must be above 0"):
            law_of(poisson, q, x, column=np.array([0.5, 0.5, bad, 1.0, 1.0]))
    with pytest.raises(ValueError, match="is 1 in every row"):
        law_of(poisson, q, x, column=np.ones(5))


def test_a_target_without_members_and_a_single_shard_are_refused():
    q, x = table(np.random.default_rng(21), 5)
    with pytest.raises(ValueError, match="no row is a member of target = 'd'"):
        law_of(processes.build("random_shard", size=2, target="d"), q, x, target=np.zeros(5, dtype=bool))
    one = Groups(labels=("a",), counts=np.array([5]))
    with pytest.raises(ValueError, match="holds one shard alone"):
        law_of(processes.build("whole_shards", column="s", count=1), q, x, column=np.zeros(5), groups=one)


def test_a_constant_query_has_no_variance_at_all():
    rng = np.random.default_rng(22)
    x = rng.normal(size=(500, 3))
    q = np.stack([np.full(500, 0.1), np.where(np.arange(500) % 2, 0.3, 0.1 + 0.2), rng.normal(size=500)], axis=1)
    c = rng.lognormal(0, 1, 500)
    for process, column in (
        (processes.build("iid", size=3), None),
        (processes.build("weighted", column="c", size=3), c),
    ):
        law = law_of(process, q, x, column=column, cuts=(100,))
        assert law.constant.tolist() == [True, True, False]
        assert law.s1[:2].tolist() == [0, 0]
        assert np.all(law.cross[:2] == 0)


def test_a_variance_that_overflows_is_refused():
    x = np.array([[1e200], [-1e200], [0.0]])
    with (
        pytest.raises(ValueError, match="variance of the moments overflows"),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        law_of(processes.build("iid", size=3), np.ones((3, 1)), x)


def test_every_kind_is_tested_here():
    assert set(processes.KINDS) == {"iid", "weighted", "random_shard", "poisson", "whole_shards", "markov"}
    assert reduce(lambda a, b: a and b, (kind.source for kind in processes.KINDS.values()))
