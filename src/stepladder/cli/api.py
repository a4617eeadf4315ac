"""``stepladder api``: the HTTP API."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from stepladder.cli.options import App, Host, LogLevel, Port
from stepladder.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepladder.api.access import ApiKey
    from stepladder.api.dependencies import Identify
    from stepladder.schemas.tool import Kit
    from stepladder.services.submission import Notify
    from stepladder.wiring.settings import Settings


def api(
    host: Host = None,
    port: Port = None,
    app: App = None,
    log_level: LogLevel = None,
) -> None:
    """Serve the HTTP API until Ctrl-C or SIGTERM."""
    from stepladder.api.access import parse_keys
    from stepladder.wiring import servers
    from stepladder.wiring.app import load_kit
    from stepladder.wiring.logs import configure_logs, say

    settings = load_settings(host=host, port=port, app=app, log_level=log_level)
    configure_logs(settings.log_level or "info")
    keys = () if settings.api_keys is None else parse_keys(settings.api_keys.get_secret_value())
    kit = load_kit(settings.app)
    with servers.database(settings, say) as url:
        asyncio.run(_serve(settings, url, servers.running_broker(settings), kit, keys))


async def _serve(settings: Settings, url: str, broker_url: str | None, kit: Kit, keys: Sequence[ApiKey]) -> None:
    from stepladder.api.app import create_app
    from stepladder.api.serve import serve
    from stepladder.dashboard.app import make_dashboard
    from stepladder.models.database import Database
    from stepladder.models.fair import keep_bounds
    from stepladder.models.prices import keep_prices
    from stepladder.models.store import Store
    from stepladder.queries.reads import Reads
    from stepladder.wiring.logs import say

    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url))
        if settings.prices is not None:
            await keep_prices(database, settings.prices)
        bounds = {key.principal.name: key.max_in_flight for key in keys if key.max_in_flight is not None}
        await keep_bounds(database, bounds, settings.max_in_flight_per_principal)
        notify = await _notifier(stack, broker_url)
        identify = await _engine(stack, settings)
        app = create_app(
            database,
            Store(database),
            Reads(database),
            kit,
            notify,
            identify=identify,
            keys=keys,
            dashboard=lambda services: make_dashboard(services, database),
        )
        await serve(app, settings.host, settings.port, started=lambda at: say("API ready", url=at))


async def _notifier(stack: AsyncExitStack, broker_url: str | None) -> Notify:
    """Without a broker nothing is sent, and the workers' sweep finds due jobs."""
    if broker_url is None:
        return lambda _: None
    from stepladder.tasks.app import make_app
    from stepladder.tasks.notifier import Notifier

    return (await stack.enter_async_context(Notifier(make_app(broker_url)))).notify_soon


async def _engine(stack: AsyncExitStack, settings: Settings) -> Identify | None:
    """How to ask the engine for its identity; None without an engine, which the API can do without."""
    if settings.engine_url is None:
        return None
    from stepladder.engine.client import EngineClient
    from stepladder.engine.identity import identify

    key = settings.engine_api_key
    client = EngineClient(settings.engine_url, api_key=None if key is None else key.get_secret_value())
    engine = await stack.enter_async_context(client)
    return lambda: identify(engine, model=settings.model)
