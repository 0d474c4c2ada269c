"""Generalised linear models as releases: logistic and Poisson regression, fitted by passes."""

from dataclasses import dataclass

from predcube.tasks.frames import Total
from predcube.tasks.releases.minimisation import minimised
from predcube.tasks.releases.regressions import FittedRegression, Model, Regression


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood(Regression):
    """A regression without a closed form."""

    def bare(self, total: Total) -> FittedRegression:
        survey, design = self.surveyed(total)
        model = Model(loss=self.loss, design=design, l2=self.l2, centre=0.0)
        gamma, curvature = minimised(model, total, float(survey.means[0]), self.kind)
        return self.finished(model, gamma, curvature, survey)
