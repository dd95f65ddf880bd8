"""Every bench after the other, with its results in bench/RESULTS.md: `make bench`, about half an hour.

Each is a module that can be run alone, with options of its own: `python -m bench.compare --help`.
"""

import subprocess
import sys
from pathlib import Path

BENCHES = (
    "compare",
    "work",
    "latency",
    "tick",
    "tick --grow",
    "wide",
    "api",
    "pages",
    "matrix",
    "commands",
    "worker",
    "bus",
    "bus --servicebus",
    "store",
)


def main() -> int:
    missed = []
    for bench in BENCHES:
        name, *options = bench.split()
        if not (Path(__file__).parent / f"{name}.py").exists():
            continue
        print(f"bench.{bench}", file=sys.stderr, flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}", *options, "--record"], check=False).returncode:
            missed.append(bench)
    print(f"not as it should be: {', '.join(missed)}" if missed else "everything is as it should be")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
