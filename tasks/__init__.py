"""The science of predictions: hypothesis classes, learners, exact mixtures and audits, as functions of NumPy arrays."""

from predcube.tasks import hypotheses, learners
from predcube.tasks.audits import audit
from predcube.tasks.leakage import predictability
from predcube.tasks.predictions import mixture_weights, predict
from predcube.tasks.worst import worst_case

__all__ = ["audit", "hypotheses", "learners", "mixture_weights", "predict", "predictability", "worst_case"]
