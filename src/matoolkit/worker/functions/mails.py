"""Mail to people: a note, an alert. The same mail is sent once, however often the job comes.

A mail's id is made of what it says and to whom, and what the sender's mailbox has sent with that id is not sent again.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from matoolkit.worker.clients.failures import Unanswered
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import user_key
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.lag import until_true
from matoolkit.worker.functions.needs import READ_SENT_MAIL, SEND_MAIL
from matoolkit.worker.functions.recipients import mail_address
from matoolkit.worker.registry import function


@function("Send-Mail", needs=(SEND_MAIL, READ_SENT_MAIL))
def send_mail(context: Context, sender: str, recipients: list[str], subject: str, body: str = "") -> bool:
    """Send a mail from a mailbox; the same mail to the same people is sent once."""
    send_once(context, "Send-Mail", sender, recipients, subject, body)
    return True


@function("Send-AdminAlert", needs=(SEND_MAIL, READ_SENT_MAIL))
def send_admin_alert(
    context: Context, subject: str, body: str = "", sender: str | None = None, recipients: list[str] | None = None
) -> bool:
    """Mail those who look after the migration; the same alert is sent once."""
    chosen, people = sender or context.alert_sender, recipients or list(context.alert_recipients)
    if not chosen or not people:
        problem = "sender and recipients are missing: give Sender and Recipients, or set ALERT_SENDER, ALERT_RECIPIENTS"
        raise InvalidParameters("Send-AdminAlert", [problem])
    send_once(context, "Send-AdminAlert", chosen, people, subject, body)
    return True


def send_once(
    context: Context,
    function_name: str,
    sender: str,
    recipients: Sequence[str],
    subject: str,
    body: str,
    *,
    key: str | None = None,
) -> None:
    """Send a mail unless it was sent; it is the same mail if its key is, or else if everything is."""
    graph: GraphClient = context.graph
    mailbox = user_key(sender, "Sender")
    people = [mail_address(function_name, "Recipients", one) for one in recipients]
    if not people:
        raise InvalidParameters(function_name, ["Recipients is empty"])
    identifier = message_id(mailbox, key or "\0".join((*sorted(people), subject, body)))
    if graph.was_sent(mailbox, identifier):
        return
    message: dict[str, Any] = {
        "subject": subject,
        "body": {"contentType": "text", "content": body},
        "toRecipients": [{"emailAddress": {"address": one}} for one in people],
        "internetMessageId": identifier,
    }
    try:
        graph.send_mail(mailbox, message)
    except Unanswered as lost:
        if until_true(context.clock, lambda: graph.was_sent(mailbox, identifier)):
            return
        if not lost.is_over:
            raise
        graph.send_mail(mailbox, message)


def message_id(sender: str, content: str) -> str:
    """Return the id of a mail: the same content has the same id, which does not show it."""
    digest = hashlib.sha256(f"{sender.casefold()}\0{content}".encode()).hexdigest()[:40]
    return f"<{digest}@matoolkit.invalid>"
