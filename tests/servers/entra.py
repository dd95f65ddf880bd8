"""The token endpoint that Azure gives to a process with a managed identity."""

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.servers.http import Answer, Request


@dataclass
class ManagedIdentity:
    """Issues a numbered token for whatever resource is asked for."""

    expires_on: int
    is_unknown: bool = False
    resources: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        if self.is_unknown:
            return Answer({"error": "invalid_request", "error_description": "Identity not found"}, 400)
        (resource,) = parse_qs(urlsplit(request.path).query)["resource"]
        self.resources.append(resource)
        token = f"token-{len(self.resources)}"
        return Answer({"access_token": token, "expires_on": str(self.expires_on), "token_type": "Bearer"})
