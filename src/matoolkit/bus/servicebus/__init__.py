"""Azure Service Bus through Microsoft's SDK: the bus's second implementation (rule M8, ADR 29).

Read `bus.py` first. One private thread (`thread.py`) owns every link: the SDK's senders and receivers may not be used
by two threads. `links.py` opens links again after a drop, and `faults.py` says which error of ours each fault is.
"""

from matoolkit.bus.servicebus.address import Address
from matoolkit.bus.servicebus.bus import ServiceBus

__all__ = ["Address", "ServiceBus"]
