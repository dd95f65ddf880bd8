"""Every address of the pages, found by itself, on a stage with some of everything."""

from dataclasses import dataclass, field
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute

from tests.stage import Stage
from tests.web.furnished import Furnished

# What is no page: files that belong to all of them, streams, and the way to Entra and back.
_NO_PAGES = ("/static/", "/live/", "/sign")


@dataclass(frozen=True, slots=True)
class Everywhere:
    """Fills addresses with what is on the stage; for a page with a new kind of part, say here what to put into it."""

    stage: Stage
    furnished: Furnished
    values: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        failed = self.furnished.failed
        values = {
            "batch_id": failed.id,
            "letter_id": 1,
            "member_id": self.stage.members(failed)[0].id,
            "name": failed.runbook_name,
            "version": 1,
            "what": "cancel",
        }
        object.__setattr__(self, "values", {name: quote(str(value)) for name, value in values.items()})

    def pages(self, app: FastAPI) -> list[str]:
        """Return the address of every page and of every file that a page offers, those of a held batch too."""
        found = [path for path in _paths(app, "GET") if not path.startswith(_NO_PAGES)]
        return [address for path in found for address in self._looked_at(path)]

    def changes(self, app: FastAPI) -> list[str]:
        """Return every address to which a form can be sent."""
        return [path.format(**self.values) for path in _paths(app, "POST")]

    def _looked_at(self, path: str) -> list[str]:
        held, undone = self.furnished.held.id, self.furnished.undone.id
        query = {
            "/holds/late": f"?what=approve&before={self.stage.now:%Y-%m-%d}",
            "/undo-failures/retry": f"?batch={undone}",
        }.get(path, "")
        if path.startswith("/holds/{batch_id}"):
            return [path.format(batch_id=held), path.format(batch_id=self.furnished.late[0].id)]
        if path == "/undo-failures":
            return [path, f"{path}?batch={undone}"]
        return [path.format(**self.values) + query]


def _paths(app: FastAPI, method: str) -> list[str]:
    routers = [getattr(route, "original_router", None) for route in app.routes]
    routes = [route for router in routers if router is not None for route in router.routes]
    found = [route.path for route in routes if isinstance(route, APIRoute) and method in (route.methods or ())]
    assert found
    return found
