"""How often a message is delivered before it is put aside (rule M6)."""

MAX_DELIVERIES = 10
