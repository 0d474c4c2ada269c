"""Breach processes by name: ``build(kind, **parameters)`` makes one, ``KINDS`` names them all."""

from collections.abc import Mapping
from typing import Any

from predcube.tasks import parameters as _parameters
from predcube.tasks.processes.base import Factors, Law, Process
from predcube.tasks.processes.iid import Iid
from predcube.tasks.processes.markov import Markov
from predcube.tasks.processes.poisson import Poisson
from predcube.tasks.processes.random_shard import RandomShard
from predcube.tasks.processes.weighted import Weighted
from predcube.tasks.processes.whole_shards import WholeShards

KINDS: Mapping[str, type[Process[Any]]] = {
    cls.kind: cls for cls in (Iid, Weighted, RandomShard, Poisson, WholeShards, Markov)
}


def build(kind: str, **parameters: Any) -> Process[Any]:
    """The process called ``kind``, parameters spelled as in a spec.

    Raises ValueError that names the nearest known kind or parameter, or the limit that a value breaks. A target that
    the process cannot have is refused with the reason.

    >>> build("random_shard", fraction=0.29).drawn(100)
    29
    """
    process = KINDS.get(kind)
    target = parameters.get("target")
    if process is not None and isinstance(target, str):
        refusal = _refused(process, target)
        if refusal is not None:
            raise ValueError(refusal)
    return _parameters.build(KINDS, kind, parameters, family="process")


def _refused(process: type[Process[Any]], target: str) -> str | None:
    if process is RandomShard or target == "all":
        return None
    if target == "unseen":
        if process in (Poisson, WholeShards):
            return None
        return (
            f"process {process.kind!r}: target = 'unseen' has no meaning where rows are drawn with replacement; the "
            "target is 'all'"
        )
    return f"process {process.kind!r}: target = {target!r} is an expression, which only random_shard takes as a law D'"


__all__ = ["KINDS", "Factors", "Law", "Process", "build"]
