"""Leases renewed as a worker's heartbeat renews them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.models.leases import LeaseConnection
from stepladder.models.records import LeaseStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from stepladder.models.leases import Renewed
    from stepladder.models.records import Claim
    from stepladder.models.store import Store


def renew(store: Store, claims: Sequence[Claim], lease_s: float) -> dict[UUID, Renewed]:
    connection = LeaseConnection(store.database.url)
    try:
        return connection.renew(claims, lease_s)
    finally:
        connection.close()


def heartbeat(store: Store, claim: Claim, lease_s: float = 60.0) -> LeaseStatus:
    found = renew(store, [claim], lease_s).get(claim.job.id)
    return LeaseStatus.LOST if found is None else found.status
