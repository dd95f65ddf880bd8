"""How often a message is delivered before it is put aside, and how large it may be (rules M6 and M9)."""

MAX_DELIVERIES = 10
# A message that came this often may have killed its process each time, and what was at hand with it.
SUSPICIOUS_DELIVERIES = 3
# Azure Service Bus takes 256 kB, headers included.
MAX_BODY_BYTES = 240 * 1024
