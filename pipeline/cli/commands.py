"""Every module of commands, imported once so that each registers its own."""
