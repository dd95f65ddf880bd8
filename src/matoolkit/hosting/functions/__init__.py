"""Scheduler, orchestrator and admin API as Azure Functions (Python v2 model); the apps themselves are in `functions/`.

The host may begin a process at any moment and end it at any moment. Importing an app reads its settings; the store and
the bus are opened by the first call. Every function may run in a process of its own (ADR 33).
"""
