"""The step of W(N,S) as a task of Procrastinate, which defers the next one before it is done."""

import os

import procrastinate

ADDRESS = "BENCH_ADDRESS"

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ[ADDRESS], min_size=2, max_size=16))


@app.task(name="step", queue="bench")
async def step(member: int, number: int, steps: int) -> dict[str, object]:
    if number + 1 < steps:
        await step.defer_async(member=member, number=number + 1, steps=steps)
    return {"ok": True, "id": number}


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def start(members: int, steps: int) -> None:
    async with app.open_async():
        await step.batch_defer_async(*({"member": n, "number": 0, "steps": steps} for n in range(members)))
