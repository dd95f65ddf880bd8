"""A namespace in a process of its own: `python -m tests.servers.servicebus worker-01 [...] [--port 5672]`.

It prints its connection string, then does what each line of its input says, and answers each with a line. It ends when
its input does. Over port 5672 the SDK needs no port in its address.
"""

import argparse
import sys
from collections.abc import Callable

from tests.servers.servicebus.server import ServiceBus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workers", nargs="*", help="ids of workers that have a subscription")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with ServiceBus(options.port) as server:
        server.lay_out(*options.workers)
        _say(server.connection_string)
        for line in sys.stdin:
            _say(_done(server, *line.split()))


def _done(server: ServiceBus, command: str, *words: str) -> str:
    commands: dict[str, Callable[[], object]] = {
        "delay": lambda: server.delay(float(words[0])),
        "cut": server.cut,
        "detach": server.detach,
        "empty": server.empty,
        "left": lambda: len(server.messages(words[0], words[1])),
    }
    if command not in commands:
        return f"one of {', '.join(commands)}"
    answer = commands[command]()
    return "done" if answer is None else str(answer)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
