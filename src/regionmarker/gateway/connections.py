"""Clients' connections: how many there may be, in all and from one address.

Behind a proxy all connections have the proxy's address. Where the proxy is one that the operator trusts, the address
that it names (``X-Forwarded-For``) counts instead, for as long as its request takes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge

from regionmarker.errors import InputError
from regionmarker.gateway.settings import Settings


class Connections:
    """Counts what is open and says what may come in.

    Parameters
    ----------
    settings
        The limits.
    registry
        Where it is counted.

    Examples
    --------
    >>> from pathlib import Path
    >>> connections = Connections(Settings(Path("k"), clients_per_address=1, trusted_proxies=()))
    >>> connections.enter("192.0.2.1"), connections.enter("192.0.2.1"), connections.enter("192.0.2.2")
    (None, 'address', None)
    """

    def __init__(self, settings: Settings, registry: CollectorRegistry | None = None) -> None:
        self.settings = settings
        self.most = settings.clients
        """Connections at once; less than the setting where the system gives us fewer descriptors."""
        self.open = 0
        self._by_address: dict[str, int] = {}
        self._proxies = parse_networks(settings.trusted_proxies)
        self.is_proxy = lru_cache(4096)(self._is_proxy)
        registry = registry or CollectorRegistry()
        self.refused = Counter(
            "regionmarker_connections_refused", "Connections that were ended for a limit.", ["reason"],
            registry=registry,
        )  # fmt: skip
        Gauge("regionmarker_connections", "Open connections of clients.", registry=registry).set_function(
            lambda: self.open
        )

    def enter(self, address: str) -> str | None:
        """Count one more connection; or say which limit it meets."""
        if self.open >= self.most:
            return "clients"
        if not self.is_proxy(address) and not self.enter_address(address):
            return "address"
        self.open += 1
        return None

    def leave(self, address: str) -> None:
        self.open -= 1
        if not self.is_proxy(address):
            self.leave_address(address)

    def enter_address(self, address: str) -> bool:
        """Count one connection, or one request behind a proxy, for an address; false where it has too many."""
        place = network_of(address)
        count = self._by_address.get(place, 0)
        if count >= self.settings.clients_per_address:
            return False
        self._by_address[place] = count + 1
        return True

    def leave_address(self, address: str) -> None:
        place = network_of(address)
        count = self._by_address[place] - 1
        if count:
            self._by_address[place] = count
        else:
            del self._by_address[place]

    def client_of(self, forwarded: str) -> str | None:
        """Return whom a chain of proxies names: the last address that is not itself a proxy's.

        What stands before it was written by the client, who may write anything.
        """
        for address in reversed(forwarded.split(",")):
            try:
                plain = str(ipaddress.ip_address(address.strip()))
            except ValueError:
                return None
            if not self.is_proxy(plain):
                return plain
        return None

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return not address  # a socket of this machine has no address
        return any(found in network for network in self._proxies)


def parse_networks(named: Sequence[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Read the addresses and networks of proxies.

    Examples
    --------
    >>> parse_networks(["10.0.0.0/8"])
    [IPv4Network('10.0.0.0/8')]
    >>> parse_networks(["nginx"])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: --trusted-proxy takes an address or a network such as 10.0.0.0/8, not 'nginx'
    """
    try:
        return [ipaddress.ip_network(one) for one in named]
    except ValueError:
        wrong = next(one for one in named if not _is_network(one))
        raise InputError(
            f"--trusted-proxy takes an address or a network such as 10.0.0.0/8, not {wrong[:80]!r}"
        ) from None


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


@lru_cache(4096)
def network_of(address: str) -> str:
    """Return what is counted as one place: an IPv4 address, or the 64 bits of IPv6 that one customer is given.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8::1:2:3"), network_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))
