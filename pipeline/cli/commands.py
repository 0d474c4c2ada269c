"""Every module of commands, imported once so that each registers its own."""

from predcube.pipeline.cli import asking, auditing, checking, disclosing, listing, running, searching

__all__ = ["asking", "auditing", "checking", "disclosing", "listing", "running", "searching"]
