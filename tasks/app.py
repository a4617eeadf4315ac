"""The Celery application: where the broker is, and how messages are sent and received."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from celery import Celery
from celery.app.amqp import AMQP
from kombu import Connection, Queue

from stepladder.schemas.errors import BadInputError

RUN_JOB = "stepladder.run_job"
"""The one task. A message says that there is work; its argument is the id of the job that fell due, as text."""

QUEUE = "stepladder"
SCHEMES = ("redis", "rediss", "redis+socket", "sentinel")
SOCKET_TIMEOUT_S = 5.0
"""Longer than the one second that a worker waits in the broker for a message."""


RECONNECT_S = 2.0
"""How long a worker waits between two attempts to reach the broker; Celery would back off up to 30 seconds."""


class _Connection(Connection):
    def ensure_connection(self, *arguments: Any, **options: Any) -> Any:
        return super().ensure_connection(*arguments, **{"interval_max": RECONNECT_S, **options})


class _Messaging(AMQP):
    Connection = _Connection


class _App(Celery):
    """Uses the broker it was created with, and ignores CELERY_BROKER_URL."""

    def __init__(self, url: str) -> None:
        super().__init__("stepladder", broker=url, amqp=_Messaging, set_as_current=False, fixups=[])
        self._url = url

    def connection_for_read(self, url: str | None = None, **options: Any) -> Connection:
        return super().connection_for_read(url or self._url, **options)

    def connection_for_write(self, url: str | None = None, **options: Any) -> Connection:
        return super().connection_for_write(url or self._url, **options)


def make_app(broker_url: str) -> Celery:
    """An application over the Redis or Valkey of ``broker_url``, which is not connected to yet.

    ``redis://:PASSWORD@HOST:PORT/0``, with TLS ``rediss://``, or ``redis+socket://PATH``. With TLS the broker's
    certificate is checked unless the URL says ``?ssl_cert_reqs=none``; ``?ssl_ca_certs=FILE`` names a private
    authority. Raises ``BadInputError`` for another scheme.
    """
    scheme, found, _ = broker_url.partition("://")
    if not found or scheme not in SCHEMES:
        raise BadInputError(  # the rest of the URL may hold a password
            f"The broker's URL begins with {scheme if found else 'no scheme'!r}; it must be a Redis or a Valkey.",
            remedy="Write STEPLADDER_BROKER_URL as redis://:PASSWORD@HOST:PORT/0, or rediss://... with TLS.",
        )
    app = _App(_checking_certificates(broker_url))
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_queues=[Queue(QUEUE)],
        task_default_queue=QUEUE,
        task_ignore_result=True,
        task_publish_retry=False,  # the sweep sends lost messages again
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_pool="threads",
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,  # access to the broker must not suffice to stop workers
        worker_cancel_long_running_tasks_on_connection_loss=False,  # jobs depend on their lease, not on the broker
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # The message of a worker that died comes back after the visibility timeout, one hour. Nothing waits for that:
        # the job's lease ends long before, and the sweep sends another message.
        broker_transport_options={
            "priority_steps": [0],  # one list: the store decides which job comes first
            "socket_timeout": SOCKET_TIMEOUT_S,
            "socket_connect_timeout": SOCKET_TIMEOUT_S,
            "socket_keepalive": True,
            "max_retries": 0,  # for the notifier; a worker retries forever
        },
    )
    return app


def _checking_certificates(url: str) -> str:
    """Kombu does not check certificates by default."""
    parts = urlsplit(url)
    if parts.scheme != "rediss" or "ssl_cert_reqs" in parse_qs(parts.query):
        return url
    return f"{url}{'&' if parts.query else '?'}ssl_cert_reqs=required"
