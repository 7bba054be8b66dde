"""Everything that ``serve`` can set; all of it but the key file has a default that is safe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regionmarker.errors import InputError

EMBEDDINGS_ROUTE = "/v1/embeddings"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
LOOPBACK_PROXIES = ("127.0.0.1", "::1")
MOST_INPUTS = 2048
"""Inputs in one request, as OpenAI has it."""
MOST_TOKENS = 8192
"""Tokens in one input."""
MOST_TOKENS_IN_ALL = 300_000
"""Tokens in one request."""
UPSTREAM_KEY_VARIABLE = "REGIONMARKER_UPSTREAM_API_KEY"
MOST_USER_LETTERS = 1024
"""Letters of ``user``, which goes along with every part of a request."""
LEAST_TOKEN_LETTERS = 16
_ABOVE_ZERO = (
    "body_bytes", "patience", "connect", "read", "total", "attempts", "connections", "grace", "clients",
    "clients_per_address", "header_bytes", "header_count", "header_timeout", "idle",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a gateway is made of, and how it behaves.

    Attributes
    ----------
    key, passphrase, secret_file
        A serving key file, or a whole key, and what opens it.
    normalise
        Scale the upstream's vectors to unit length.
    upstream, upstream_key, batch
        The upstream's spec, the API key that it wants, and how many inputs it takes at once.
    database
        The tenants' database; ``None`` makes everyone the default tenant, on loopback alone.
    unmarked
        Who may be served unmarked vectors: ``"nobody"``, ``"shadow-tenants"`` or ``"everyone"``.
    accept_removal
        Allow with a graded key what lets customers remove its mark: unmarked vectors, another key for the same model.
    canaries
        A file that keeps the upstream's first answers to the canary texts; ``None`` keeps them in memory.
    telemetry
        Send spans and metrics to OpenTelemetry, by its own environment variables.
    model
        The name that clients ask for; None takes the upstream's.
    aliases
        Further names that are answered with the same model.
    body_bytes
        The largest request body.
    bytes_in_flight
        Bytes of request bodies, and of the texts in them, that are held at once; one tenant may hold half of them.
    clients, clients_per_address
        Open connections, in all and from one address. Behind a trusted proxy an address is what the proxy says, and
        has so many requests under way at once.
    trusted_proxies
        Addresses and networks of proxies whose ``X-Forwarded-For`` is believed.
    header_bytes, header_count
        The largest head of a request, and the most headers in it.
    header_timeout
        Seconds from a connection's start, or a request's first byte, until all headers are there.
    idle
        Seconds that a connection may be open between two requests.
    capacity
        Inputs under way at once, over all tenants.
    queue
        Inputs that may wait for their turn.
    patience
        Seconds that a request may wait for its turn.
    held_refusals
        Refusals that may be held back at once, when clients do not wait as they were asked to.
    connect, read, total
        Seconds to reach the upstream, between two of its bytes, and for a whole request with all its retries.
    attempts
        How often the upstream is asked the same thing, at the most.
    connections
        Open connections to the upstream.
    drain_delay
        Seconds between SIGTERM and closing the door, in which ``/readyz`` says 503 and requests are still answered.
    grace
        Seconds that requests under way may take after that.
    admin_token
        What ``/metrics`` and the console ask for; without one there is no console, and ``/metrics`` answers only on the
        loopback interface.

    Examples
    --------
    >>> Settings(Path("serving.rmkey"), capacity=100)
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: capacity must be at least 2048, the inputs of one request, but is 100
    """

    key: Path
    passphrase: str | None = None
    secret_file: Path | None = None
    normalise: bool = False
    upstream: str = "wordllama"
    upstream_key: str = ""
    batch: int | None = None
    database: str | None = None
    unmarked: str = "nobody"
    accept_removal: bool = False
    canaries: Path | None = None
    telemetry: bool = False
    log_level: str = "info"
    host: str = "127.0.0.1"
    port: int = 8000
    model: str | None = None
    aliases: tuple[str, ...] = ()
    body_bytes: int = 16 << 20
    bytes_in_flight: int = 128 << 20
    clients: int = 2048
    clients_per_address: int = 512
    trusted_proxies: tuple[str, ...] = LOOPBACK_PROXIES
    header_bytes: int = 32 << 10
    header_count: int = 100
    header_timeout: float = 10.0
    idle: float = 75.0
    capacity: int = 4096
    queue: int = 8192
    patience: float = 2.0
    held_refusals: int = 1024
    connect: float = 5.0
    read: float = 60.0
    total: float = 120.0
    attempts: int = 3
    connections: int = 256
    drain_delay: float = 1.0
    grace: float = 30.0
    admin_token: str = ""

    def __post_init__(self) -> None:
        if self.capacity < MOST_INPUTS:
            raise InputError(
                f"capacity must be at least {MOST_INPUTS}, the inputs of one request, but is {self.capacity}"
            )
        if not 0 <= self.port <= 65535:
            raise InputError(f"port must be 0 to 65535, but is {self.port}")
        if self.bytes_in_flight < 2 * self.body_bytes:
            raise InputError(
                f"bytes_in_flight must be at least {2 * self.body_bytes}, two of the largest bodies, "
                f"but is {self.bytes_in_flight}"
            )
        for name in _ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0, but is {getattr(self, name)}")
        for name in ("queue", "held_refusals", "drain_delay"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must not be below 0, but is {getattr(self, name)}")

    def __repr__(self) -> str:
        return f"<Settings: {self.host}:{self.port}>"  # tokens and passphrases stay out of logs and tracebacks

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the gateway."""
        return self.host in LOOPBACK


def check_token(token: str) -> None:
    """Refuse an admin token that could be guessed.

    Examples
    --------
    >>> check_token("guess")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the admin token has 5 letters and needs 16: make one with openssl rand -hex 24
    """
    if len(token) < LEAST_TOKEN_LETTERS:
        raise InputError(
            f"the admin token has {len(token)} letters and needs {LEAST_TOKEN_LETTERS}: "
            "make one with openssl rand -hex 24"
        )
