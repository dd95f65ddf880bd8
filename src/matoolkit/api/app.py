"""The application: its routes, its problems, and the document that describes both."""

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from matoolkit import __version__
from matoolkit.api.pacing import PaceHeaders
from matoolkit.api.problems import MEDIA_TYPE, add_problem_handlers, answer
from matoolkit.api.routes import (
    approvals,
    attention,
    batches,
    explaining,
    gates,
    members,
    operations,
    people,
    reports,
    runbooks,
    system,
    undofailures,
    undoing,
)
from matoolkit.api.services import (
    guard_of_admins,
    guard_of_approvers,
    guard_of_bodies,
    guard_of_operators,
    guard_of_readers,
)
from matoolkit.api.shapes.runbooks import PublishRequest
from matoolkit.clock import FastClock
from matoolkit.doors.bodies import BodyLimit
from matoolkit.doors.identity import ADMIN_ROLE, APPROVER_ROLE, OPERATOR_ROLE
from matoolkit.doors.problems import Problem
from matoolkit.doors.services import Services

_PROBLEM = {
    "description": "A problem, with a code and a hint.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}

_TOPICS = (
    runbooks,
    batches,
    members,
    people,
    reports,
    attention,
    gates,
    approvals,
    explaining,
    operations,
    undoing,
    undofailures,
    system,
)


def create_app(services: Services) -> FastAPI:
    """Put the application together."""
    app = _routes()
    app.state.services = services
    if isinstance(services.clock, FastClock):
        app.add_middleware(PaceHeaders, clock=services.clock)
    return app


def openapi_document() -> dict[str, Any]:
    """Return the description of all routes."""
    return _routes().openapi()


def _routes() -> FastAPI:
    app = FastAPI(
        title="M&A Toolkit admin API",
        version=__version__,
        summary="Everything that people can do with the system that runs migrations.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    # What a route asks for besides, it asks itself.
    app.add_middleware(BodyLimit, guard=guard_of_bodies, answer=lambda _, error: answer(error))
    add_problem_handlers(app)
    for topic in _TOPICS:
        app.include_router(topic.router)
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _with_problems(made())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Say in the document what is true: every refusal is a problem, and tokens are Entra's."""
    schemas = document["components"]["schemas"]
    for model in (Problem, PublishRequest):
        described = model.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
        schemas.update(described.pop("$defs", {}))
        schemas[model.__name__] = described
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    roles = _roles()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
            if role := roles[path, method]:
                operation["security"] = [{"entra": []}]
                operation["x-role"] = role
    document["components"]["securitySchemes"] = {
        "entra": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of Entra."}
    }
    return document


def _roles() -> dict[tuple[str, str], str | None]:
    """Return for every route who may ask, read from what guards it."""
    routes = [route for topic in _TOPICS for route in topic.router.routes if isinstance(route, APIRoute)]
    guards = {
        guard_of_readers: "anybody signed in",
        guard_of_admins: ADMIN_ROLE,
        guard_of_operators: OPERATOR_ROLE,
        guard_of_approvers: APPROVER_ROLE,
    }
    found: dict[tuple[str, str], str | None] = {}
    for route in routes:
        roles = [guards[call] for call in _calls(route.dependant) if call in guards]
        found |= {(route.path, method.lower()): next(iter(roles), None) for method in route.methods or ()}
    return found


def _calls(dependant: Dependant) -> Iterator[Callable[..., Any] | None]:
    for needed in dependant.dependencies:
        yield needed.call
        yield from _calls(needed)
