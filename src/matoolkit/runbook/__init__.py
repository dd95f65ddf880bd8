"""The runbook language: YAML in, a model out, and everything that is wrong said at once. Does no I/O."""
