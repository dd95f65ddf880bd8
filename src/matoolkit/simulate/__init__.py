"""The whole system in one thread, on a virtual clock, driven by a seed, with faults (architecture, section 5)."""
