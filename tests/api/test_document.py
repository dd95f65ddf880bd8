"""What the document says of every route."""

from typing import Any

from matoolkit.api.app import openapi_document

PREVIEWS = {
    "/api/runbooks/{name}/query/preview",
    "/api/runbooks/{name}/members/exclude/preview",
    "/api/batches/{batch_id}/retry/preview",
    "/api/batches/{batch_id}/undo/preview",
}


def parameters(operation: dict[str, Any]) -> set[str]:
    return {parameter["name"] for parameter in operation.get("parameters", [])}


def test_every_change_takes_a_key_and_all_but_a_creation_what_was_seen() -> None:
    for path, methods in openapi_document()["paths"].items():
        for method, operation in methods.items():
            changes = method != "get" and path not in PREVIEWS
            assert ("Idempotency-Key" in parameters(operation)) is changes, (method, path)
            creates = (method, path) in {("post", f"/api/{what}") for what in ("batches", "gates", "gates/freeze")}
            assert ("If-Match" in parameters(operation)) is (changes and not creates), (method, path)


def test_an_answer_that_has_an_etag_can_be_asked_for_with_what_is_known() -> None:
    for path, methods in openapi_document()["paths"].items():
        for method, operation in methods.items():
            has_tag = "ETag" in operation["responses"].get("200", {}).get("headers", {})
            assert ("304" in operation["responses"]) is has_tag, (method, path)
            assert ("If-None-Match" in parameters(operation)) is has_tag, (method, path)
