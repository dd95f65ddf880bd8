"""The bus: how messages look, where they go, and two ways of carrying them."""
