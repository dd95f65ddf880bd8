"""Files that belong to pages: kept by browsers for as long as they like, and those of others as they came."""

import hashlib
import re
from pathlib import Path

import pytest

from matoolkit.web import assets
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

VENDOR = Path(assets.__file__).with_name("static") / "vendor"
_LINE = re.compile(r"^\| (\S+) \| (\S+) \| (\S+) \| .*?\((\S+)\) \| ([0-9a-f]{64}) \|$", re.MULTILINE)


def test_files_of_others_are_as_they_came() -> None:
    written = {
        name: (licence, digest) for name, _, _, licence, digest in _LINE.findall((VENDOR / "README.md").read_text())
    }
    assert written.keys() == {path.name for path in VENDOR.glob("*.js")}
    for name, (licence, digest) in written.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
        assert (VENDOR / licence).stat().st_size > 0, name


def test_browsers_keep_files_whose_address_holds_their_hash(visitor: Visitor) -> None:
    page = visitor.get("/batches").text
    addresses = re.findall(r'"(/static/[^"]+)"', page)
    assert len(addresses) >= 4
    for address in addresses:
        answer = visitor.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        name = address.rsplit("/", 1)[1]
        assert visitor.get(f"/static/000000000000/{name}").status_code == 404


def test_nobody_signs_in_to_get_a_file_and_pages_are_never_kept(visitor: Visitor) -> None:
    assert visitor.get("/batches").headers["cache-control"] == "no-store"
    assert visitor.get("/batches.csv").headers["cache-control"] == "no-store"
