"""Who is asking: an API key becomes a tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Mode = Literal["mark", "shadow"]


@dataclass(frozen=True)
class Tenant:
    """A customer of the gateway.

    Attributes
    ----------
    name
        Who asks; "" is the default tenant.
    requests_per_minute
        How often it may ask; None for no limit.
    inputs_in_flight
        How many inputs it may have under way at once; None for no limit but the gateway's.
    mode
        ``"mark"``; or ``"shadow"``: mark, measure, and serve the clean vectors.
    place
        The label that its mark follows from where it is not its name.

    Examples
    --------
    >>> Tenant("acme", requests_per_minute=60).mode, Tenant("acme", place="place-0001").label
    ('mark', 'place-0001')
    """

    name: str
    requests_per_minute: int | None = None
    inputs_in_flight: int | None = None
    mode: Mode = "mark"
    place: str | None = None

    @property
    def label(self) -> str:
        """Whose mark its vectors carry."""
        return self.name if self.place is None else self.place


class TenantLookup(Protocol):
    """Where tenants are looked up and their usage is kept."""

    async def find(self, api_key: str) -> Tenant | None:
        """Return whose key this is; None where it is unknown or revoked. "" stands for no key at all."""

    def record(self, tenant: str, *, requests: int, inputs: int, tokens: int) -> None:
        """Add to a tenant's usage; must not wait."""

    async def close(self) -> None:
        """Write what is still in memory."""


class OpenLookup:
    """Without a database everyone is the default tenant; for a gateway that only this machine can reach.

    Examples
    --------
    >>> import asyncio
    >>> asyncio.run(OpenLookup().find("anything"))
    Tenant(name='', requests_per_minute=None, inputs_in_flight=None, mode='mark', place=None)
    """

    _everyone = Tenant("")

    async def find(self, api_key: str) -> Tenant | None:  # noqa: ARG002 - any key will do
        return self._everyone

    def record(self, tenant: str, *, requests: int, inputs: int, tokens: int) -> None:
        """Forget it: nobody is billed."""

    async def close(self) -> None:
        """Nothing is open."""
