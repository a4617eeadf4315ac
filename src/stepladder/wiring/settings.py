"""Settings: a flag wins over the environment, the environment over ``stepladder.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import BeforeValidator, Field, InstanceOf, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from stepladder.schemas.errors import BadInputError
from stepladder.schemas.prices import Prices
from stepladder.wiring.prices import parse_prices

CONFIGURATION_FILE = "stepladder.toml"
PREFIX = "STEPLADDER_"
PORT = 8700


class Settings(BaseSettings):
    """Each field is read from ``STEPLADDER_NAME`` in the environment, or from ``name`` in ``stepladder.toml``."""

    # An empty variable counts as not set, as compose files and shells write it.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, toml_file=CONFIGURATION_FILE, frozen=True, extra="forbid"
    )

    database_url: SecretStr | None = Field(None, description="PostgreSQL; without it, an embedded one under `home`")
    broker_url: SecretStr | None = Field(None, description="Redis or Valkey; without it, `up` starts one under `home`")
    engine_url: str | None = Field(None, description="OpenAI-compatible base, such as http://gpu-1:8000/v1")
    engine_api_key: SecretStr | None = None
    model: str | None = Field(None, description="the model to ask for; without it, the first that the engine lists")
    app: str | None = Field(None, description="the Python module that registers tools and rules")
    home: Path = Field(default_factory=lambda: platformdirs.user_data_path("stepladder"))
    host: str = Field("127.0.0.1", description="where the API listens; other than loopback requires `api_keys`")
    port: int = Field(PORT, ge=0, le=65535, description="port of the API and the dashboard; 0 picks a free one")
    api_keys: SecretStr | None = Field(None, description='JSON: [{"name", "key", "scopes", "max_in_flight"?}]')
    prices: Annotated[InstanceOf[Prices] | None, NoDecode, BeforeValidator(parse_prices)] = Field(
        None,
        description='JSON: {"MODEL": {"prompt", "completion"}, "currency"?}, per million tokens',
        validate_default=False,
    )
    engine_concurrency: int | None = Field(
        None, ge=0, le=1_000_000, description="requests that all workers together have in flight at the engine"
    )
    max_in_flight_per_principal: int | None = Field(
        None, ge=0, le=2**31 - 1, description="jobs of one principal in flight at once"
    )
    concurrency: int = Field(400, ge=1, le=10_000, description="jobs that one worker runs at once")
    rule_timeout_s: float = Field(
        2.0, gt=0, le=600, description="seconds that a Python rule may take; then it is stopped, and counts as broken"
    )
    keep_raw_days: float | None = Field(
        None, ge=0, le=36_500, description="days after a job's end until its raw answers are removed; without it, never"
    )
    keep_events_days: float | None = Field(
        None, ge=0, le=36_500, description="days after a job's end until its history is removed; without it, never"
    )
    log_level: Literal["debug", "info", "warning", "error"] | None = Field(
        None, description="default: set by the command"
    )

    @field_validator("port", mode="before")
    @classmethod
    def _without_links(cls, value: object) -> object:
        """Kubernetes sets STEPLADDER_PORT to a URL wherever a service is named ``stepladder``."""
        return PORT if isinstance(value, str) and value.startswith("tcp://") else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(**flags: object) -> Settings:
    """Settings with the flags given (None is not given). Raises ``BadInputError`` naming the invalid one."""
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic validates the flags
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        name = str(detail["loc"][0])
        message = f"{PREFIX}{name.upper()} cannot be used: {detail['msg'].lower()}"
        raise BadInputError(
            message, remedy=f"fix the flag, the variable, or `{name}` in {CONFIGURATION_FILE}"
        ) from None
    except ValueError as error:
        raise BadInputError(f"{CONFIGURATION_FILE} cannot be read: {error}", remedy="fix it, or remove it") from None
