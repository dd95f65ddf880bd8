"""Files that belong to every page. Their addresses hold their hash, so a browser keeps them for as long as it likes."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from fastapi import APIRouter, Response

from matoolkit.errors import UnknownRoute

router = APIRouter()

_FOLDER = Path(__file__).with_name("static")
_KINDS = MappingProxyType(
    {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
)
_FOR_EVER = "public, max-age=31536000, immutable"
_HASH_LENGTH = 12


@dataclass(frozen=True, slots=True)
class _Asset:
    content: bytes
    kind: str
    hash: str


@cache
def _assets() -> dict[str, _Asset]:
    return {path.name: _asset(path) for path in _FOLDER.rglob("*") if path.suffix in _KINDS}


def _asset(path: Path) -> _Asset:
    content = path.read_bytes()
    return _Asset(content, _KINDS[path.suffix], hashlib.sha256(content).hexdigest()[:_HASH_LENGTH])


def address_of(name: str) -> str:
    """Return the address of a file."""
    return f"/static/{_assets()[name].hash}/{name}"


@router.get("/static/{hashed}/{name}")
async def get_asset(hashed: str, name: str) -> Response:
    """Return a file; nobody needs to be signed in for what anybody can read in the package."""
    found = _assets().get(name)
    if found is None or found.hash != hashed:
        raise UnknownRoute(f"/static/{hashed}/{name}")
    return Response(found.content, media_type=found.kind, headers={"Cache-Control": _FOR_EVER})
