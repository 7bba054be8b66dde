"""Connections are counted in all and by address, and a proxy's word only where it is trusted."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from tests.support.gateways import Log

from regionmarker.errors import InputError
from regionmarker.gateway.connections import Connections, network_of, parse_networks
from regionmarker.gateway.server import fit_descriptors
from regionmarker.gateway.settings import Settings

KEY = Path("no file")


def test_places_that_count_as_one():
    assert network_of("2001:db8:0:0:1::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")
    assert network_of("not an address") == ""


def test_a_chain_of_proxies_is_read_from_its_end():
    connections = Connections(Settings(KEY, trusted_proxies=("10.0.0.0/8", "::1")))
    assert connections.client_of("1.1.1.1, 2.2.2.2, 10.1.2.3") == "2.2.2.2"
    assert connections.client_of("10.0.0.1, 10.0.0.2") is None
    assert connections.client_of("1.1.1.1, nonsense, 10.1.2.3") is None  # what stands before was not written by a proxy
    assert connections.client_of("") is None


def test_proxies_are_addresses():
    with pytest.raises(InputError, match="--trusted-proxy takes an address or a network"):
        parse_networks(["10.0.0.0/8", "10.0.0.1/8"])


@pytest.mark.parametrize(
    ("limits", "clients", "soft"),
    [((8192, 8192), 2048, None), ((1024, 8192), 2048, 2400), ((512, 1024), 672, 1024), ((64, 64), 16, None)],
)
def test_descriptors_are_enough_for_all_connections(monkeypatch, limits, clients, soft):
    gateway = type("Gateway", (), {})()
    gateway.settings, gateway.logger = Settings(KEY), Log()
    gateway.connections = Connections(gateway.settings)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: asked.append(wanted))
    fit_descriptors(gateway)
    assert gateway.connections.most == clients
    assert asked == ([] if soft is None else [(soft, limits[1])])
    assert bool(gateway.logger.lines) == (clients < 2048)
