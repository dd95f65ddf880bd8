"""What is secret in a runbook: which parameters, and so which variables (rule W8)."""

# What a value begins with that names a secret: `secret:initial-password`.
REFERENCE = "secret:"
# The folded names of parameters that are secret in every function, at any depth.
ALWAYS_SECRET = frozenset({"password"})
