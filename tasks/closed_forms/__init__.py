"""Expected errors in closed form: in go a learner, a law of independent points on the cube and n, out comes E_S[L_D].

On the cube what a learner says at a point depends on the records there, and on where they stand, alone. Under a law
whose labels follow a uniformly random function, E_S is then a sum over Binomial counts, point by point: no sample is
drawn (Dagan & Feldman 2020, Theorem sta-lb, for the law; theory of the forms: ``learners``).
"""

from predcube.tasks.closed_forms.errors import EXPECTED, expected_errors, unavailable

__all__ = ["EXPECTED", "expected_errors", "unavailable"]
