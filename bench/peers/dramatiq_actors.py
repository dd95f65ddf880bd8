"""The step of W(N,S) as an actor of Dramatiq, with its result kept in another database of the same server."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

ADDRESS = "BENCH_ADDRESS"
_DAY_MILLISECONDS = 24 * 60 * 60 * 1000

broker = RedisBroker(url=f"{os.environ[ADDRESS]}/0")
results = RedisBackend(url=f"{os.environ[ADDRESS]}/1")
broker.add_middleware(Results(backend=results, store_results=True, result_ttl=_DAY_MILLISECONDS))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def step(before: object, number: int = 0) -> dict[str, object]:  # noqa: ARG001 - a pipeline hands it over
    return {"ok": True, "id": number}
