"""predcube: exact costs of stable and private predictions, and of data releases, as labelled cubes.

The four rooms are ``predcube.tasks`` (the science), ``predcube.storage`` (the cube), ``predcube.cluster``
(the fan-out) and ``predcube.pipeline`` (which composes them).
"""

__version__ = "0.1.0"
