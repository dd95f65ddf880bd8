"""The application: its routes, its problems, and the document that describes both."""

from typing import Any

from fastapi import FastAPI

from matoolkit import __version__
from matoolkit.api.bodies import BodyLimit
from matoolkit.api.problems import MEDIA_TYPE, Problem, add_problem_handlers
from matoolkit.api.routes import batches, members, operations, runbooks, system
from matoolkit.api.services import Services
from matoolkit.api.shapes.runbooks import PublishRequest

_PROBLEM = {
    "description": "A problem, with a code and a hint.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def create_app(services: Services) -> FastAPI:
    """Put the application together."""
    app = FastAPI(
        title="M&A Toolkit admin API",
        version=__version__,
        summary="Everything people may ask of the system that runs migrations.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    app.state.services = services
    app.add_middleware(BodyLimit)
    add_problem_handlers(app)
    for topic in (runbooks, batches, members, operations, system):
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
    for path, methods in document["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
            if path not in ("/healthz", "/readyz"):
                operation["security"] = [{"entra": []}]
    document["components"]["securitySchemes"] = {
        "entra": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of Entra."}
    }
    return document
