"""Mixtures over hypotheses: the weights w_h = E_I[1{h ∈ H_T}·λ_h/Z_I] by five ways that agree, cut into blocks."""

from predcube.tasks.mixture.base import (
    LEAF_OPERATIONS,
    Functional,
    Labels,
    Marginals,
    Means,
    Mixture,
    MixtureWeights,
    Occupancy,
    Partial,
    Prediction,
    Workload,
    evaluate,
    height,
    subtree,
)
from predcube.tasks.mixture.batch import batch_log_marginals, batch_log_weights
from predcube.tasks.mixture.choice import (
    EXACT_BUDGET,
    METHODS,
    Method,
    affordable,
    choose_method,
    inapplicable,
    kernel,
    operations,
    subset_mixture,
)
from predcube.tasks.mixture.full import full_mixture, point_mass
from predcube.tasks.mixture.montecarlo import aimed
from predcube.tasks.mixture.samples import occupancy, tally

__all__ = [
    "EXACT_BUDGET",
    "LEAF_OPERATIONS",
    "METHODS",
    "Functional",
    "Labels",
    "Marginals",
    "Means",
    "Method",
    "Mixture",
    "MixtureWeights",
    "Occupancy",
    "Partial",
    "Prediction",
    "Workload",
    "affordable",
    "aimed",
    "batch_log_marginals",
    "batch_log_weights",
    "choose_method",
    "evaluate",
    "full_mixture",
    "height",
    "inapplicable",
    "kernel",
    "occupancy",
    "operations",
    "point_mass",
    "subset_mixture",
    "subtree",
    "tally",
]
