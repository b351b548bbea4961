"""Which addresses the HTTP action may connect to, and which hosts it may name at all.

Whatever is not on the public internet is refused: `ipaddress` knows most of that, and what it
gets wrong, or cannot know, is in the tables below. An address that carries another one inside
(mapped, 6to4, Teredo, NAT64) is as good as the one inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, Self

from timeball.errors import UsageError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

ALLOW_VARIABLE: Final = "TIMEBALL_HTTP_ALLOW"
"""Where whoever runs a worker names the hosts and networks that are not public and may be called,
with commas between them."""

_DENIED: Final[tuple[tuple[Network, str], ...]] = tuple(
    (ip_network(text), why)
    for text, why in (
        ("0.0.0.0/8", "this machine itself"),
        ("127.0.0.0/8", "this machine itself"),
        ("::1/128", "this machine itself"),
        ("::/96", "this machine itself, or a form that is out of use"),
        ("169.254.0.0/16", "link-local, where clouds serve the credentials of machines"),
        ("fe80::/10", "link-local"),
        ("168.63.129.16/32", "a cloud's service for its machines"),
        ("100.64.0.0/10", "a provider's own network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.88.99.0/24", "reserved for relays"),
        ("198.18.0.0/15", "reserved for measurements"),
        ("240.0.0.0/4", "reserved"),
        ("fec0::/10", "a private network"),
        ("64:ff9b:1::/48", "a private translation of addresses"),
        ("100::/64", "a network that discards everything"),
        ("2001::/23", "reserved for protocols"),
        ("3fff::/20", "reserved for documentation"),
        ("5f00::/16", "reserved for routers"),
        ("::/3", "no public network"),
        ("4000::/2", "no public network"),
        ("8000::/1", "no public network"),
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_NAME_MAX: Final = 253


def why_not_public(address: Address) -> str | None:
    """Return what keeps an address from being a public one; None if it is one."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "bound to one interface of this machine"
    inside = _inside(address)
    if inside is not None:
        return why_not_public(inside)
    for network, why in _DENIED:
        if address in network:
            return why
    if address.is_multicast:
        return "a group and no machine"
    return None if address.is_global else "a private network"


def _inside(address: Address) -> IPv4Address | None:
    """Return the address that another form carries."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def host_of(text: str) -> str:
    """Return a host as it stands in an address line, in small letters and without a last dot.

    Raises:
        UsageError: It is neither a name nor a plain address. Forms that only some programs take
            for an address, such as ``127.1`` and ``0x7f000001``, are none.
    """
    host = text.lower().removesuffix(".")
    if ":" in host:
        _literal(host, text)
        return host
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        _literal(host, text)
    elif not (all(map(_LABEL.fullmatch, labels)) and len(host) <= _NAME_MAX):
        raise UsageError(
            f"{text[:80]!r} is no host: write a name of letters, digits, - and dots (another "
            "alphabet in its xn-- form), or an address"
        )
    return host


def _literal(host: str, text: str) -> Address:
    try:
        found = ip_address(host)
    except ValueError:
        found = None
    if found is None or (isinstance(found, IPv6Address) and found.scope_id is not None):
        raise UsageError(
            f"{text[:80]!r} is no address: write four numbers such as 192.0.2.7, or [2001:db8::7]"
        )
    return found


def literal(host: str) -> Address | None:
    """Return the address that a host of `host_of` is; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A list of hosts and networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = field(default=())

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Return the list of some texts: host names, addresses, and networks such as 10.0.0.0/8.

        Raises:
            UsageError: One of them is none of these.
        """
        hosts, networks = set(), []
        for entry in entries:
            if not isinstance(entry, str):
                raise UsageError(f"{entry!r} in an allow list: write a host, or 10.0.0.0/8")
            network = _network(entry)
            if network is None:
                hosts.add(host_of(entry))
            else:
                networks.append(network)
        return cls(hosts=frozenset(hosts), networks=tuple(networks))

    @classmethod
    def by_worker(cls, text: str) -> Self:
        """Return the list that whoever runs a worker has put into `ALLOW_VARIABLE`.

        Raises:
            UsageError: A part of it is neither a host nor a network.
        """
        try:
            return cls.of(re.findall(r"[^\s,]+", text))
        except UsageError as error:
            raise UsageError(f"{ALLOW_VARIABLE}: {error}") from None

    def __bool__(self) -> bool:
        return bool(self.hosts or self.networks)

    def has(self, host: str, address: Address | None) -> bool:
        """Return whether a host, or the address that it has, is in the list."""
        return host in self.hosts or any(
            each in network
            for each in _forms(address)
            for network in self.networks
            if each.version == network.version
        )


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry.strip("[]"))
    except ValueError:
        if "/" in entry:
            raise UsageError(
                f"{entry[:80]!r} is no network: write such as 10.0.0.0/8, with zeros behind"
            ) from None
        return None


def _forms(address: Address | None) -> Iterator[Address]:
    if address is not None:
        yield address
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            yield address.ipv4_mapped


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Says which connections one job may make.

    Args:
        asked: The job's own list. If it names anything, everything else is refused.
        granted: The list of whoever runs the worker. An address that is not public has to be in
            both.
    """

    asked: Allowed = field(default_factory=Allowed)
    granted: Allowed = field(default_factory=Allowed)

    def objection(self, host: str, address: Address) -> str | None:
        """Return why a host with this address must not be connected to; None if it may be."""
        if self.asked and not self.asked.has(host, address):
            return f"{_shown(host, address)} is not in the job's own allow list"
        why = why_not_public(address)
        if why is None:
            return None
        if not self.asked:
            return (
                f"{_shown(host, address)} is not public ({why}): where that is meant, allow it "
                f'by name, allow=["{address}"]'
            )
        if not self.granted.has(host, address):
            return (
                f"{_shown(host, address)} is not public ({why}), and this worker does not allow "
                f"it: set {ALLOW_VARIABLE}={address} where it runs"
            )
        return None


def _shown(host: str, address: Address) -> str:
    return host if literal(host) == address else f"{host} ({address})"
