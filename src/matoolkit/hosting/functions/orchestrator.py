"""The orchestrator as a function app: the host receives piles of messages and settles them, all or nothing."""

import os
import typing
from collections.abc import Mapping, Sequence

import azure.functions as func

from matoolkit.bus.handed import PATIENCE_SECONDS, HandedPiles
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import Clock, SystemClock
from matoolkit.hosting.functions.messages import letters_of
from matoolkit.hosting.functions.starting import (
    EVERY_HALF_MINUTE,
    Lazily,
    Opened,
    OpenParts,
    begun,
    opened,
    settings_of_app,
    sweep_each,
)
from matoolkit.hosting.orchestrator import sweeps_of
from matoolkit.ports import Subscription
from matoolkit.settings import Settings
from matoolkit.system import build_orchestrator

# Settings of the app that begin with this name say where the host finds the bus.
CONNECTION = "ServiceBus"


class HostedOrchestrator:
    """An orchestrator that handles what it is given."""

    def __init__(self, settings: Settings, parts: Opened, clock: Clock) -> None:
        orchestrator = build_orchestrator(settings, parts.store, parts.messaging.publisher)
        self._sweeps = sweeps_of(orchestrator, parts.messaging)
        self._piles = {
            subscription: HandedPiles(parts.store, subscription, orchestrator.handle, clock)
            for subscription in (EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR)
        }

    def handle(self, subscription: Subscription, messages: Sequence[func.ServiceBusMessage]) -> None:
        """Handle a pile."""
        self._piles[subscription].handle(letters_of(subscription, messages))

    def sweep(self) -> None:
        """Look for lost work, send what waits in the outbox, keep what became a dead letter."""
        sweep_each(self._sweeps)


def orchestrator_app(
    environ: Mapping[str, str] = os.environ, clock: Clock | None = None, open_parts: OpenParts = opened
) -> func.FunctionApp:
    """Return the functions of the orchestrator."""
    settings, clock = settings_of_app(environ), clock or SystemClock()

    def made() -> HostedOrchestrator:
        parts = begun(settings, "orchestrator", environ, open_parts, is_watching=True)
        return HostedOrchestrator(settings, parts, clock)

    orchestrator = Lazily(made)
    app = func.FunctionApp()

    def handle(subscription: Subscription, messages: Sequence[func.ServiceBusMessage]) -> None:
        ends_at = clock.monotonic() + PATIENCE_SECONDS
        try:
            orchestrator().handle(subscription, messages)
        except Exception:
            # The host gives the pile back, which counts as a delivery: not at once, or all of them are soon used up.
            clock.sleep(max(0.0, ends_at - clock.monotonic()))
            raise

    # The host's worker refuses `list[…]` as the type of a pile.
    @app.function_name("events")
    @_messages_of(app, EVENTS_OF_ORCHESTRATOR)
    def events(messages: typing.List[func.ServiceBusMessage]) -> None:  # noqa: UP006
        handle(EVENTS_OF_ORCHESTRATOR, messages)

    @app.function_name("results")
    @_messages_of(app, RESULTS_OF_ORCHESTRATOR)
    def results(messages: typing.List[func.ServiceBusMessage]) -> None:  # noqa: UP006
        handle(RESULTS_OF_ORCHESTRATOR, messages)

    @app.function_name("sweep")
    @app.timer_trigger("timer", EVERY_HALF_MINUTE, run_on_startup=False, use_monitor=False)
    def sweep(timer: func.TimerRequest) -> None:  # noqa: ARG001 - the host gives it
        orchestrator().sweep()

    return app


def _messages_of(app: func.FunctionApp, subscription: Subscription) -> typing.Callable[..., typing.Any]:
    return app.service_bus_topic_trigger(
        "messages", CONNECTION, subscription.topic, subscription.name, cardinality=func.Cardinality.MANY
    )
