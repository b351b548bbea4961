"""The REST API and the dashboard, as one ASGI application (extra `web`)."""

from __future__ import annotations

from timeball.web.app import create_app
from timeball.web.scopes import Scope
from timeball.web.tokens import Token

__all__ = ["Scope", "Token", "create_app"]
