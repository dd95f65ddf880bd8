"""The administration of the tests' Service Bus, seen through the real SDK."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus.management import ServiceBusAdministrationClient, SqlRuleFilter, TrueRuleFilter

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus


@pytest.fixture
def admin(service_bus: "ServiceBus") -> Iterator[ServiceBusAdministrationClient]:
    with ServiceBusAdministrationClient.from_connection_string(service_bus.connection_string) as admin:
        yield admin


def test_topics_are_created_read_changed_and_deleted(admin: ServiceBusAdministrationClient) -> None:
    week = timedelta(days=7)
    admin.create_topic(
        "jobs",
        default_message_time_to_live=week,
        requires_duplicate_detection=True,
        duplicate_detection_history_time_window=timedelta(minutes=20),
    )
    with pytest.raises(ResourceExistsError):
        admin.create_topic("Jobs")
    topic = admin.get_topic("jobs")
    assert topic.default_message_time_to_live == week
    assert topic.requires_duplicate_detection
    assert topic.duplicate_detection_history_time_window == timedelta(minutes=20)
    assert topic.max_size_in_megabytes == 1024

    topic.default_message_time_to_live = timedelta(hours=1)
    admin.update_topic(topic)
    assert admin.get_topic("jobs").default_message_time_to_live == timedelta(hours=1)
    topic.requires_duplicate_detection = False
    with pytest.raises(HttpResponseError, match="cannot be changed"):
        admin.update_topic(topic)

    admin.delete_topic("jobs")
    with pytest.raises(ResourceNotFoundError):
        admin.get_topic("jobs")
    with pytest.raises(ResourceNotFoundError):
        admin.delete_topic("jobs")


def test_subscriptions_are_created_read_changed_and_deleted(
    admin: ServiceBusAdministrationClient, service_bus: "ServiceBus"
) -> None:
    service_bus.create_topic("jobs")
    made = admin.create_subscription("jobs", "w1", lock_duration=timedelta(minutes=2), max_delivery_count=3)
    assert (made.lock_duration, made.max_delivery_count) == (timedelta(minutes=2), 3)
    with pytest.raises(HttpResponseError, match="5 minutes"):
        admin.create_subscription("jobs", "w2", lock_duration=timedelta(minutes=6))
    with pytest.raises(ResourceNotFoundError):
        admin.create_subscription("nowhere", "w1")

    made.dead_lettering_on_message_expiration = True
    admin.update_subscription("jobs", made)
    assert admin.get_subscription("jobs", "w1").dead_lettering_on_message_expiration
    counts = admin.get_subscription_runtime_properties("jobs", "w1")
    assert (counts.active_message_count, counts.dead_letter_message_count) == (0, 0)

    admin.delete_subscription("jobs", "w1")
    with pytest.raises(ResourceNotFoundError):
        admin.get_subscription("jobs", "w1")


def test_rules_are_created_read_changed_and_deleted(
    admin: ServiceBusAdministrationClient, service_bus: "ServiceBus"
) -> None:
    service_bus.create_topic("jobs")
    admin.create_subscription("jobs", "w1")
    (default,) = admin.list_rules("jobs", "w1")
    assert (default.name, type(default.filter)) == ("$Default", TrueRuleFilter)

    admin.create_rule("jobs", "w1", "mine", filter=SqlRuleFilter("WorkerId = 'w1'"))
    admin.delete_rule("jobs", "w1", "$Default")
    rule = admin.get_rule("jobs", "w1", "mine")
    assert isinstance(rule.filter, SqlRuleFilter)
    assert rule.filter.sql_expression == "WorkerId = 'w1'"
    rule.filter = SqlRuleFilter("WorkerId = 'w2'")
    admin.update_rule("jobs", "w1", rule)
    (found,) = admin.list_rules("jobs", "w1")
    assert isinstance(found.filter, SqlRuleFilter)
    assert (found.name, found.filter.sql_expression) == ("mine", "WorkerId = 'w2'")
    with pytest.raises(HttpResponseError, match="ends too early"):
        admin.create_rule("jobs", "w1", "bad", filter=SqlRuleFilter("WorkerId ="))
    with pytest.raises(ResourceNotFoundError):
        admin.get_rule("jobs", "w1", "bad")


def test_lists_come_in_pages(admin: ServiceBusAdministrationClient, service_bus: "ServiceBus") -> None:
    assert list(admin.list_topics()) == []
    names = [f"topic-{number}" for number in range(5)]
    for name in names:
        service_bus.create_topic(name)
    assert [topic.name for topic in admin.list_topics(max_page_size=2)] == names
    assert list(admin.list_subscriptions("topic-1")) == []
    assert admin.get_namespace_properties().messaging_sku == "Standard"


def test_who_may_not_manage_is_refused(service_bus: "ServiceBus") -> None:
    service_bus.lay_out()
    address = service_bus.connection_string_of("SendAndListen")
    with ServiceBusAdministrationClient.from_connection_string(address) as admin:
        with pytest.raises(ClientAuthenticationError):
            list(admin.list_topics())
        with pytest.raises(ClientAuthenticationError):
            admin.create_topic("jobs")
