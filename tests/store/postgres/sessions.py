"""Real connections that a test steps statement by statement; certify's, under a test's names."""

from __future__ import annotations

from timeball.certify.sessions import Session, until
from timeball.certify.verbs import (
    claim_all,
    claim_of,
    expire_of,
    jobs_json,
    settle_of,
    submit,
    worker_of,
)

__all__ = [
    "Session",
    "claim_all",
    "claim_of",
    "expire_of",
    "jobs_json",
    "settle_of",
    "submit",
    "until",
    "worker_of",
]
