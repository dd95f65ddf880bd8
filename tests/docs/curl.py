"""What pages need of curl, for a machine that has none: `curl -s URL [-d DATA]`."""

import sys
import urllib.request

_, _, url, *data = sys.argv
with urllib.request.urlopen(url, data=data[1].encode() if data else None) as answer:
    sys.stdout.write(answer.read().decode())
