"""Bodies as the routes get them."""

from typing import Annotated

from fastapi import Depends, Request


async def _whole(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_whole)]
