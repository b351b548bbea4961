"""The API about how this server is set up."""

from __future__ import annotations

import platform
from datetime import datetime

from fastapi import Request, Response
from pydantic import Field

from timeball import __version__
from timeball.core.cron import zone_version
from timeball.core.upkeep import Keep
from timeball.errors import SchemaMismatch
from timeball.store.postgres.connections import shown
from timeball.store.postgres.migrate import check
from timeball.web.api.models import Model, answer
from timeball.web.desk import Desk, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope
from timeball.web.settings import Origin, of_environment
from timeball.web.tokens import Token

routes = Routes("fleet")
_NUMBERED = "migrations/"


class SettingOut(Model):
    """One setting."""

    name: str
    value: str | None = Field(description="null: it is not set; secrets are hidden")
    origin: Origin
    about: str


class TokenOut(Model):
    """A token, but for what would let somebody in."""

    name: str
    scopes: list[str]
    created_at: datetime | None
    used_at: datetime | None = Field(description="null: not since this process has begun")
    expires_at: datetime | None
    expired: bool


class MakeOut(Model):
    """Of what this server is made."""

    timeball: str
    python: str
    postgresql: str
    database: str = Field(description="Its address, without what may be secret")
    db_schema: str = Field(description="The schema's name")
    db_schema_version: str = Field(description="The newest numbered file that was applied to it")
    db_schema_trouble: str | None = Field(description="Why it does not fit this program")
    zone_data: str


class RetentionOut(Model):
    """How long workers keep jobs that have ended, unless one was told otherwise by its --keep."""

    succeeded_s: float | None
    others_s: float | None


class SettingsOut(Model):
    """How this server is set up."""

    made_of: MakeOut
    settings: list[SettingOut]
    environment: list[SettingOut]
    hosts: list[str] = Field(description="Names under which it may be asked for")
    tokens: list[TokenOut]
    retention: RetentionOut


@routes.get("/api/v1/settings", Scope.ADMIN, gives=SettingsOut)
def show_settings(request: Request) -> Response:
    """Show how this server is set up: what it was told and by whom, its tokens, its versions."""
    return answer(settings_of(desk_of(request)))


def settings_of(desk: Desk) -> SettingsOut:
    """Return how a server is set up."""
    keep = Keep()
    return SettingsOut(
        made_of=_made_of(desk),
        settings=[SettingOut(**each._asdict()) for each in desk.settings.given],
        environment=[SettingOut(**each._asdict()) for each in of_environment()],
        hosts=[*desk.settings.hosts],
        tokens=[_token_out(desk, token) for token in desk.gate.tokens],
        retention=RetentionOut(succeeded_s=keep.succeeded_s, others_s=keep.others_s),
    )


def _made_of(desk: Desk) -> MakeOut:
    connections, trouble = desk.look_connections, None
    try:
        check(connections)
    except SchemaMismatch as error:
        trouble = str(error)
    ((postgresql, *_),) = connections.run("doctor_server")
    applied = [name for name, *_ in connections.run("migrations") if name.startswith(_NUMBERED)]
    return MakeOut(
        timeball=__version__,
        python=platform.python_version(),
        postgresql=postgresql,
        database=shown(connections.dsn),
        db_schema=connections.schema,
        db_schema_version=max(applied, default="").removeprefix(_NUMBERED).removesuffix(".sql"),
        db_schema_trouble=trouble,
        zone_data=zone_version(),
    )


def _token_out(desk: Desk, token: Token) -> TokenOut:
    return TokenOut(
        name=token.name,
        scopes=sorted(token.scopes),
        created_at=token.created_at,
        used_at=desk.gate.tokens.used_at(token),
        expires_at=token.expires_at,
        expired=token.is_over,
    )
