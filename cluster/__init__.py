"""Fan-out: the one place that knows Dask, and its serial twin. What a job means is not known here."""

from predcube.cluster.attempts import describe
from predcube.cluster.base import Fanout, Job, Outcome, Program
from predcube.cluster.failures import ClusterError
from predcube.cluster.profiles import PROFILES, Profile, connect

__all__ = ["PROFILES", "ClusterError", "Fanout", "Job", "Outcome", "Profile", "Program", "connect", "describe"]
