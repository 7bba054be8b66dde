"""``regionmarker serve``: the gateway."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from regionmarker.cli.options import AskPassphrase, KeyPath, SecretFile, passphrase
from regionmarker.errors import InputError, MissingExtraError

_LARGEST_CONFIG = 1 << 18  # bytes
ADMIN_TOKEN_VARIABLE = "REGIONMARKER_ADMIN_TOKEN"  # noqa: S105 - a name, not a token


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take a TOML file's values as the defaults of the options; an option that is typed goes before them."""
    if path is None:
        return None
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > _LARGEST_CONFIG):
            raise InputError(
                f"{path} is not a file of options: it has more than {_LARGEST_CONFIG >> 10} KiB, or is none"
            )
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8, or a number of thousands of digits
        raise InputError(f"{path} is not TOML: {error}") from None
    options = {str(parameter.name): parameter for parameter in context.command.params}
    known = options.keys() - {"config", "ask_passphrase", "help"}
    found = {name.replace("-", "_"): value for name, value in given.items()}
    for name, value in found.items():
        if name not in known:
            raise InputError(f"{path}: serve has no option {name}: it has {', '.join(sorted(known))}")
        if isinstance(value, dict):
            raise InputError(f"{path}: {name} is a table, but must be one value, or a list where it may be repeated")
        try:
            options[name].process_value(context, value)
        except typer.BadParameter as error:
            raise InputError(f"{path}: {name} is {value!r}: {error.message}") from None
    context.default_map = {**(context.default_map or {}), **found}
    return path


def serve(
    key: KeyPath,
    config: Annotated[  # noqa: ARG001 - its callback has read it
        Path | None,
        typer.Option(
            callback=read_config, is_eager=True, help="A TOML file of these options; those typed here go before it."
        ),
    ] = None,
    upstream: Annotated[
        str,
        typer.Option(
            help="https://HOST/v1#MODEL, or openai:, vllm:, tei:, ollama:, litellm: before it; or an encoder."
        ),
    ] = "wordllama",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 for any free one.")] = 8000,
    model: Annotated[list[str] | None, typer.Option(help="The model's name for clients; may be repeated.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Inputs in one request to the upstream.")] = None,
    normalise: Annotated[bool, typer.Option(help="Scale the upstream's vectors to unit length.")] = False,
    capacity: Annotated[int, typer.Option(help="Inputs in flight at once.")] = 4096,
    queue: Annotated[int, typer.Option(help="Inputs that may wait for their turn.")] = 8192,
    bytes_in_flight: Annotated[
        int, typer.Option(help="Bytes of requests held at once; one tenant may hold half.")
    ] = 128 << 20,
    clients: Annotated[int, typer.Option(help="Open connections of clients.")] = 2048,
    clients_per_address: Annotated[
        int, typer.Option(help="Open connections from one address; requests under way behind a trusted proxy.")
    ] = 512,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="Address or network of a proxy whose X-Forwarded-For is believed; may be repeated. Default: loopback.",
            show_default=False,
        ),
    ] = None,
    header_bytes: Annotated[int, typer.Option(help="The largest head of a request, in bytes.")] = 32 << 10,
    header_count: Annotated[int, typer.Option(help="The most headers of a request.")] = 100,
    header_timeout: Annotated[float, typer.Option(help="Seconds in which a request's headers must be there.")] = 10.0,
    idle_timeout: Annotated[float, typer.Option(help="Seconds between two requests of one connection.")] = 75.0,
    timeout: Annotated[float, typer.Option(help="Seconds for one request, with all its retries.")] = 120.0,
    grace: Annotated[float, typer.Option(help="Seconds that requests may take after SIGTERM.")] = 30.0,
    drain_delay: Annotated[float, typer.Option(help="Seconds between SIGTERM and refusing new connections.")] = 1.0,
    database: Annotated[
        str | None,
        typer.Option(
            envvar="REGIONMARKER_DATABASE",
            help="The tenants: a SQLite file, or postgresql://...; needed on any address but loopback.",
            show_default=False,
        ),
    ] = None,
    serve_unmarked: Annotated[
        str,
        typer.Option(help="Let vectors leave WITHOUT a mark: shadow-tenants (those whose mode is shadow) or everyone."),
    ] = "nobody",
    accept_removal: Annotated[
        bool,
        typer.Option(
            "--accept-removal",
            help="Allow unmarked vectors, or another key, beside a graded mark: customers can then remove it.",
        ),
    ] = False,
    canaries: Annotated[
        Path | None,
        typer.Option(help="File that keeps the upstream's answers to a few fixed texts, to notice a changed model."),
    ] = None,
    telemetry: Annotated[
        bool,
        typer.Option(
            "--telemetry",
            help="Send traces and metrics to OpenTelemetry, as its OTEL_ variables say; needs the extra telemetry.",
        ),
    ] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    secret_file: SecretFile = None,
    ask_passphrase: AskPassphrase = False,
) -> None:
    """Serve an OpenAI-compatible embeddings API whose vectors carry the mark.

    On a terminal the log is plain words; elsewhere it is one JSON object per line.

    Example: regionmarker serve --key provider.rmkey --upstream openai:https://api.openai.com/v1#text-embedding-3-small
    """
    try:
        from regionmarker.gateway.server import run
    except ImportError as error:
        raise MissingExtraError.for_module(error.name or "the gateway", "gateway") from None
    from regionmarker.gateway.gateway import open_gateway
    from regionmarker.gateway.settings import LOOPBACK_PROXIES, UPSTREAM_KEY_VARIABLE, Settings

    if log_level not in ("debug", "info", "warning", "error"):
        raise InputError(f"--log-level must be debug, info, warning or error, not {log_level}")
    names = model or []
    settings = Settings(
        key, passphrase=passphrase(ask_passphrase), secret_file=secret_file, normalise=normalise, upstream=upstream,
        upstream_key=os.environ.get(UPSTREAM_KEY_VARIABLE, ""), batch=batch, database=database,
        unmarked=serve_unmarked, accept_removal=accept_removal, canaries=canaries, telemetry=telemetry,
        log_level=log_level, host=host, port=port, model=names[0] if names else None, aliases=tuple(names[1:]),
        capacity=capacity, queue=queue, bytes_in_flight=bytes_in_flight, clients=clients,
        clients_per_address=clients_per_address, header_bytes=header_bytes, header_count=header_count,
        header_timeout=header_timeout, idle=idle_timeout,
        trusted_proxies=LOOPBACK_PROXIES if trusted_proxy is None else tuple(trusted_proxy), total=timeout,
        read=min(60.0, timeout), grace=grace, drain_delay=drain_delay,
        admin_token=os.environ.get(ADMIN_TOKEN_VARIABLE, ""),
    )  # fmt: skip
    run(open_gateway(settings))
