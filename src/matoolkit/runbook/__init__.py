"""The runbook language: YAML in, a model out, and all problems reported at once. Does no I/O."""
