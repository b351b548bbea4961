"""The results as one page for people: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from timeball.certify.peers.comparison import table


def report(document: Mapping[str, Any]) -> str:
    """Return the page of a document of `results`."""
    template = Template((files(__package__) / "report.html").read_text("utf-8"))
    env, product = document["env"], document["product"]
    terms = (
        f"{product['name']} {product['version']}, profile {document['profile']}, "
        f"seed {document['seed']}, {document['at']}; Python {env['python']} on {env['system']} "
        f"{env['machine']}, {env['cpus']} processors"
    )
    records: Mapping[str, Any] = document["scenarios"]
    mutants: Mapping[str, Any] = document.get("mutants", {}).get("matrix", {})
    peers: Mapping[str, Any] | None = document.get("peers")
    return template.substitute(
        verdict=escape(document["verdict"]),
        terms=escape(terms),
        rows="\n".join(
            [
                *(_row(key, record) for key, record in records.items()),
                *(_mutant_row(key, each) for key, each in mutants.items()),
                *(_peer_row(*each) for each in (table(peers) if peers else ())),
            ]
        ),
        details="\n".join(_detail(key, record) for key, record in records.items()),
    )


def _row(key: str, record: Mapping[str, Any]) -> str:
    seen = ", ".join(f"{name}: {count}" for name, count in record["witness"].items())
    return (
        f"<tr><td>{escape(key)}</td><td>{escape(record['title'])}</td><td>{_status(record)}</td>"
        f'<td>{escape(seen or record["reason"][:200])}</td><td class="n">{record["wall_s"]:.1f}'
        "</td></tr>"
    )


def _mutant_row(key: str, mutant: Mapping[str, Any]) -> str:
    status = {"status": "passed" if mutant["killed"] else "violated"}
    seen = json.dumps(mutant["seen"], default=str)
    word = _status(status).replace(">passed<", ">killed<").replace(">violated<", ">survived<")
    return (
        f"<tr><td>{escape(key)}</td><td>{escape(mutant['defect'])}</td><td>{word}</td>"
        f"<td>{escape(mutant['check'])}: <code>{escape(seen)}</code></td>"
        f'<td class="n">{mutant["wall_s"]:.1f}</td></tr>'
    )


def _peer_row(probe: str, product: str, seen: str) -> str:
    return (
        f"<tr><td>{escape(probe)}</td><td>{escape(product)}</td><td></td><td>{escape(seen)}</td>"
        "<td></td></tr>"
    )


def _detail(key: str, record: Mapping[str, Any]) -> str:
    names = sorted(record["expected"].keys() | record["observed"].keys())
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{_value(record['expected'], name)}"
        f"{_value(record['observed'], name)}</tr>"
        for name in names
    )
    others = [check for check in record["checks"] if check["name"] not in names]
    checks = "".join(
        f"<tr><td>{escape(check['name'])}</td><td>{'holds' if check['holds'] else 'broken'}</td>"
        f"<td>{escape(check['text'])}</td></tr>"
        for check in others
    )
    parts = [
        f"<summary>{escape(key)} {_status(record)} {escape(record['title'])}</summary>",
        _table("expected", "observed", rows),
        _table("check", "", checks),
        _named("measured", record["measured"]),
        _named("left out", record["left_out"]),
        f"<pre>{escape(record['reason'])}</pre>" if record["reason"] else "",
        f"<p>again: <code>{escape(record['replay'])}</code></p>",
    ]
    shown = " open" if record["status"] not in {"passed", "skipped"} else ""
    return f"<details{shown}>{''.join(parts)}</details>"


def _status(record: Mapping[str, Any]) -> str:
    status = escape(record["status"])
    return f'<span class="status {status}">{status}</span>'


def _table(left: str, right: str, rows: str) -> str:
    if not rows:
        return ""
    head = f"<thead><tr><th></th><th>{left}</th><th>{right}</th></tr></thead>"
    return f"<table>{head}<tbody>{rows}</tbody></table>"


def _named(title: str, values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    rows = "".join(f"<tr><td>{escape(name)}</td>{_value(values, name)}</tr>" for name in values)
    return f"<table><thead><tr><th>{title}</th><th></th></tr></thead><tbody>{rows}</tbody></table>"


def _value(values: Mapping[str, Any], name: str) -> str:
    text = json.dumps(values[name], default=str) if name in values else "nothing"
    return f"<td><code>{escape(text)}</code></td>"
