"""Licences of one account, and whether there are enough of them.

A licence with Exchange in it belongs after the mailbox's id: without one it makes a new mailbox.
"""

from typing import Any

from matoolkit.worker.clients.failures import Rejected, Unanswered
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import object_id, user_key
from matoolkit.worker.context import Context
from matoolkit.worker.functions.accounts import seen_user
from matoolkit.worker.functions.needs import ASSIGN_LICENCES, CHANGE_USERS, READ_LICENCES, READ_USERS
from matoolkit.worker.registry import function

_FIELDS = ("id", "usageLocation", "assignedLicenses")


@function("Add-EntraUserLicense", needs=(READ_USERS, CHANGE_USERS, ASSIGN_LICENCES))
def add_entra_user_license(
    context: Context,
    user_id: str,
    sku_id: str,
    usage_location: str | None = None,
    disabled_plans: list[str] | None = None,
) -> bool:
    """Give a user a licence, and the country in which it is used if there is none yet."""
    graph: GraphClient = context.graph
    sku = object_id(sku_id, "SkuId")
    off = sorted(object_id(one, "DisabledPlans") for one in disabled_plans or [])
    user = seen_user(context, user_id, _FIELDS)
    if _plans_off(user, sku) == off:
        return True
    if not user.get("usageLocation"):
        if not usage_location:
            raise Rejected(f"{user['id']} has no usage location, and a licence needs one: give UsageLocation")
        graph.change_user(str(user["id"]), {"usageLocation": usage_location})
    added = [{"skuId": sku, "disabledPlans": off}]
    try:
        graph.assign_licences(str(user["id"]), added, [])
    except (Rejected, Unanswered):
        if _plans_off(seen_user(context, str(user["id"]), _FIELDS), sku) != off:
            raise
    return True


@function("Remove-EntraUserLicense", needs=(READ_USERS, ASSIGN_LICENCES))
def remove_entra_user_license(context: Context, user_id: str, sku_id: str) -> bool:
    """Take a licence from a user; one that comes from a group goes with the group."""
    graph: GraphClient = context.graph
    sku = object_id(sku_id, "SkuId")
    user = seen_user(context, user_id, _FIELDS)
    if _plans_off(user, sku) is None:
        return True
    try:
        graph.assign_licences(str(user["id"]), [], [sku])
    except (Rejected, Unanswered):
        if _plans_off(seen_user(context, str(user["id"]), _FIELDS), sku) is not None:
            raise
    return True


@function("Test-EntraUserLicense", needs=(READ_USERS,))
def check_entra_user_license(
    context: Context, user_id: str, sku_id: str, service_plan_id: str | None = None
) -> dict[str, Any]:
    """Say whether a user has a licence, and a plan of it if one is named, by itself or through a group."""
    graph: GraphClient = context.graph
    key, sku = user_key(user_id, "UserId"), object_id(sku_id, "SkuId")
    plan = None if service_plan_id is None else object_id(service_plan_id, "ServicePlanId")
    found = graph.find_user(key, ("assignedLicenses", "assignedPlans"))
    is_assigned = found is not None and _plans_off(found, sku) is not None
    is_enabled = is_assigned and (plan is None or plan in _enabled_plans(found or {}))
    data = {"IsAssigned": is_assigned, "IsEnabled": is_enabled, "UserFound": found is not None, "SkuId": sku}
    return {"complete": is_enabled, "data": data}


@function("Test-MigrationCapacity", needs=(READ_LICENCES,))
def check_migration_capacity(context: Context, sku_id: str, needed: int) -> dict[str, Any]:
    """Say whether so many licences of a kind are left."""
    graph: GraphClient = context.graph
    sku = object_id(sku_id, "SkuId")
    found = next((one for one in graph.subscribed_skus() if str(one.get("skuId")).lower() == sku), None)
    bought = int(((found or {}).get("prepaidUnits") or {}).get("enabled") or 0)
    used = int((found or {}).get("consumedUnits") or 0)
    data = {"SkuId": sku, "Available": bought - used, "Bought": bought, "Used": used, "Needed": needed}
    return {"complete": bought - used >= needed, "data": data}


def _plans_off(user: dict[str, Any], sku: str) -> list[str] | None:
    """Return the plans of a licence that are turned off for a user; nothing if it does not have the licence."""
    for one in user.get("assignedLicenses") or []:
        if str(one.get("skuId")).lower() == sku:
            return sorted(str(plan).lower() for plan in one.get("disabledPlans") or [])
    return None


def _enabled_plans(user: dict[str, Any]) -> set[str]:
    plans = user.get("assignedPlans") or []
    return {str(one.get("servicePlanId")).lower() for one in plans if one.get("capabilityStatus") == "Enabled"}
