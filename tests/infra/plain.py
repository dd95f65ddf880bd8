"""Write the templates in the older Bicep that checkov's parser reads: python -m tests.infra.plain FOLDER.

It knows no imports, no types of one's own, no lambdas, no conditions on nested resources and no calls over several
lines. None of them changes what checkov looks at, which are the plain values of resources.
"""

import re
import sys
from pathlib import Path

INFRA = Path(__file__).parents[2] / "infra"


def plain(text: str) -> str:
    """Return a template without what is newer than the parser."""
    text = re.sub(r"^import .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^@export\(\)\n(@description\(.*\)\n)?type .*?^}\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = text.replace("@export()\n", "")
    text = re.sub(r"^((?:param|output) \w+) [A-Z]\w*", r"\1 object", text, flags=re.MULTILINE)
    text = re.sub(r"^( +resource .* =) if \(.*\) \{$", r"\1 {", text, flags=re.MULTILINE)
    while (start := text.find(" map(")) >= 0:
        text = text[: start + 1] + "[]" + text[_end_of_call(text, start + 5) :]
    # A call or a choice over several lines goes on one.
    text = re.sub(r"\bconcat\(\n\s*", "concat(", text)
    text = re.sub(r"\],\n\s*", "], ", text)
    text = re.sub(r"\n\s*\)$", ")", text, flags=re.MULTILINE)
    return re.sub(r"\n\s+([?:]) ", r" \1 ", text)


def _end_of_call(text: str, position: int) -> int:
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        position += 1
    return position


def main(folder: Path) -> None:
    """Write them all."""
    for path in INFRA.rglob("*.bicep"):
        to = folder / path.relative_to(INFRA)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(plain(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
