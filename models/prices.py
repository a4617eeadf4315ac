"""Current and past prices: written when a process starts, read for every cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepladder.schemas.jsontext import json_text

if TYPE_CHECKING:
    from stepladder.models.database import Database
    from stepladder.schemas.prices import Prices


async def keep_prices(database: Database, prices: Prices) -> bool:
    """Writes the prices that differ from the current ones. True if there were any.

    They apply from now on; earlier attempts keep their cost. Only the very first prices apply to the past as well. A
    model that is no longer named has the price of ``*``, if any. Raises ``UnreachableError`` when the database breaks.
    """
    new = [
        {"model": model, "prompt": str(price.prompt), "completion": str(price.completion), "currency": prices.currency}
        for model, price in prices.models.items()
    ]
    async with database.connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE prices IN SHARE ROW EXCLUSIVE MODE")  # several processes may start at once
        cursor = await connection.execute(_MOMENT)
        at = await cursor.fetchone()
        parameters = {"new": json_text(new)} | (at or {})
        ended = (await connection.execute(_END, parameters)).rowcount
        begun = (await connection.execute(_BEGIN, parameters)).rowcount
    return ended + begun > 0


_NEW = """
    json_to_recordset(%(new)s::json) AS new(model text, prompt numeric, completion numeric, currency text)
"""

_SAME = """
    prices.until IS NULL AND prices.model = new.model AND prices.prompt = new.prompt
    AND prices.completion = new.completion AND prices.currency = new.currency
"""

# now() is from before the lock, and could be before another process's prices.
_MOMENT = """
SELECT clock_timestamp() AS at, NOT EXISTS (SELECT FROM prices) AS first
"""

_END = f"""
UPDATE prices SET until = %(at)s WHERE until IS NULL AND NOT EXISTS (SELECT FROM {_NEW} WHERE {_SAME})
"""  # noqa: S608 -- constants

_BEGIN = f"""
INSERT INTO prices (model, since, prompt, completion, currency)
SELECT model, CASE WHEN %(first)s THEN 'epoch'::timestamptz ELSE %(at)s END, prompt, completion, currency
FROM {_NEW} WHERE NOT EXISTS (SELECT FROM prices WHERE {_SAME})
"""  # noqa: S608 -- constants
