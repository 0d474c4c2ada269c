"""Every module of commands, imported once so that each registers its own."""

from predcube.pipeline.cli import asking, checking, listing, running, searching

__all__ = ["asking", "checking", "listing", "running", "searching"]
