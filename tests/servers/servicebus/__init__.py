"""A Service Bus namespace on this machine, which the SDK cannot tell from a real one; nothing of it outlives a test."""
