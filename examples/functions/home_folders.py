"""Home folders on a file server, as an example of functions of your own.

The server of the example is an HTTP API. Put its address into HOME_FOLDERS_URL.
"""

import os
from urllib.parse import quote

import httpx

from matoolkit.worker import Context, FunctionFailed, Secret, Throttled, function


@function("Set-HomeFolder")
def set_home_folder(context: Context, user_id: str, api_key: Secret, quota_gb: int = 5) -> dict[str, object]:
    """Give somebody a home folder; one that is there keeps its files and gets the quota."""
    # PUT says what is to be, not what is to be done, so a second run comes to the same end.
    response = httpx.put(
        f"{os.environ['HOME_FOLDERS_URL']}/folders/{quote(user_id, safe='')}",
        json={"quotaGb": quota_gb},
        headers={"X-Api-Key": api_key},
        timeout=30,
    )
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        raise Throttled("the file server is busy")
    if response.is_error:
        raise FunctionFailed(f"the file server answers HTTP {response.status_code}", "FileServerError")
    return {"Path": response.json()["path"], "Since": context.clock.now().isoformat()}
