"""Options that several commands share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regionmarker.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from regionmarker.corpus import EmbeddedBlock, MissingColumnError
    from regionmarker.gateway.tenants.accounts import Accounts
    from regionmarker.keys.files import KeyRing
    from regionmarker.keys.places import Assignment
    from regionmarker.marking.marker import RegionMarker
    from regionmarker.vectors import Encoder

KeyPath = Annotated[Path, typer.Option("--key", help="The key file.", show_default=False)]
KeyArgument = Annotated[Path, typer.Argument(help="The key file.", show_default=False)]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file", help="The 32-byte secret that opens the key file; default: the file PATH.secret beside it."
    ),
]
KeyId = Annotated[
    str | None, typer.Option("--key-id", help="Only this key of the file; default: all of them.", show_default=False)
]
AskPassphrase = Annotated[
    bool, typer.Option("--passphrase", help="Ask for a passphrase (or set REGIONMARKER_PASSPHRASE).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output file if it exists.")]
Suspect = Annotated[
    str,
    typer.Option("--suspect", help="An https URL (https://host/v1#model), an encoder spec, or file:answers.parquet."),
]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget",
        help="How many texts to ask per key at most; default: 3,000, and all probes of a graded key where the "
        "suspect's axes do not match.",
        show_default=False,
    ),
]
TenantNames = Annotated[list[str] | None, typer.Option("--tenant", help="A tenant's name; may be repeated.")]
TenantsFile = Annotated[Path | None, typer.Option("--tenants-file", help="A file with one tenant's name per line.")]
TenantsDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="The tenants database of the gateway, FILE or postgresql://...: looks at every place ever issued.",
        show_default=False,
    ),
]
LabelsDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="The tenants database of the gateway, FILE or postgresql://...: marks under the label of --tenant there.",
        show_default=False,
    ),
]
Corpus = Annotated[
    Path,
    typer.Option(
        "--corpus", help="Texts like those customers send: .txt, .jsonl, .csv, .parquet, or a folder of them."
    ),
]
EncoderSpec = Annotated[
    str | None, typer.Option("--encoder", help="Encoder spec; not needed where the corpus has an embedding column.")
]
TextColumn = Annotated[
    str | None,
    typer.Option("--text-column", help="The corpus's column with the texts; default: text.", show_default=False),
]
EmbeddingColumn = Annotated[
    str | None,
    typer.Option(
        "--embedding-column",
        help="The corpus's column with the embeddings, where no encoder is given; default: embedding.",
        show_default=False,
    ),
]
EmbeddingCache = Annotated[
    Path | None,
    typer.Option("--cache", help="SQLite file in which embeddings are kept, so that none is paid for twice."),
]


def passphrase(ask: bool, *, confirm: bool = False) -> str | None:
    """Ask for a passphrase at the terminal, if the option says so."""
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)) if ask else None


def new_passphrase(ask: bool, secret_file: Path | None) -> str | None:
    """Ask for the passphrase of a new key, if the option says so; refuse one that could be guessed.

    One that comes from the environment is checked as well.
    """
    from regionmarker.crypto.passphrase import check_new_passphrase
    from regionmarker.keys.files import PASSPHRASE_VARIABLE

    phrase = passphrase(ask, confirm=True)
    used = os.environ.get(PASSPHRASE_VARIABLE) if phrase is None and secret_file is None else phrase
    if used:  # an empty one is refused where it is used
        check_new_passphrase(used)
    return phrase


def check_new(out: Path, force: bool) -> None:
    """Refuse to overwrite what is there without ``--force``."""
    if out.exists() and not force:
        raise InputError(f"{out} exists already: choose another name, or use --force")


def check_folder(out: Path) -> None:
    """Refuse, before any work, a file whose folder is not there, or takes no files."""
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: the folder {out.parent} does not exist")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {out}: you may not write into the folder {out.parent}")


def check_level(level: float | None) -> None:
    """Refuse, before any work, a level that is no probability."""
    if level is not None and not 0.0 < level < 1.0:
        raise InputError(f"--level is {level:g}, but must lie between 0 and 1")


def check_tenant(marker: RegionMarker, tenant: str) -> None:
    """Refuse, before any work, a tenant for whom this key cannot mark."""
    import numpy as np

    marker.transform(np.empty((0, marker.n_features_in_), dtype=np.float32), tenant)


def tenant_names(named: list[str] | None, file: Path | None) -> list[str]:
    """Return the tenants that ``--tenant`` and ``--tenants-file`` name."""
    from regionmarker.corpus import read_texts

    return [*(named or []), *(read_texts(file) if file else [])]


def tenant_label(tenant: str, database: str | None) -> str:
    """Return what a tenant's vectors are marked under: its name, or its label in the tenants database."""
    if database is None:
        return tenant
    if not tenant:
        raise InputError("--database goes with --tenant: it says under which label that tenant is marked")
    with tenants_database(database) as accounts:
        labels = accounts.places().labels
    if tenant not in labels:
        raise InputError(f"tenant {tenant} is not in the tenants database: tenants list names those who are")
    return labels[tenant]


def read_tenants(
    named: list[str] | None, file: Path | None, database: str | None
) -> tuple[dict[str, str], tuple[Assignment, ...]]:
    """Return the label of every tenant that the options name, and the assignments where they come from a database."""
    labels = {name: name for name in tenant_names(named, file)}
    if database is None:
        return labels, ()
    if labels:
        raise InputError("give --database, or --tenant and --tenants-file: the database knows all places issued")
    with tenants_database(database) as accounts:
        places = accounts.places()
    if not places.assignments:
        raise InputError("the tenants database has no tenants yet: there is nobody to trace")
    return places.labels, places.assignments


@contextlib.contextmanager
def tenants_database(address: str, *, new: bool = False) -> Iterator[Accounts]:
    """Open the tenants database of a gateway; only a verb that enters tenants may make a ``new`` one."""
    try:
        from regionmarker.gateway.tenants.accounts import Accounts
    except ModuleNotFoundError as error:
        raise MissingExtraError.for_module(error.name or "sqlalchemy", "gateway") from None
    accounts = Accounts.open(address, new=new)
    try:
        yield accounts
    finally:
        accounts.close()


def load_ring(path: Path, secret_file: Path | None, ask_passphrase: bool, key_id: str | None = None) -> KeyRing:
    """Open a key file: all its keys, or the one that ``key_id`` names."""
    from regionmarker.keys.files import KeyRing

    ring = KeyRing.load(path, passphrase=passphrase(ask_passphrase), secret_file=secret_file)
    return ring if key_id is None else KeyRing((ring.find(key_id),))


def open_encoder(spec: str | None, cache: Path | None = None) -> Encoder | None:
    """Load the encoder that ``--encoder`` names, with the cache that ``--cache`` names."""
    if spec is None:
        if cache is not None:
            raise InputError("--cache goes with --encoder")
        return None
    from regionmarker.encoders import load_encoder

    return load_encoder(spec, cache=cache or False)


def read_corpus(
    path: Path,
    encoder: Encoder | None,
    text_column: str | None,
    embedding_column: str | None,
    *,
    most: int | None = None,
    on_texts: Callable[[int], None] = lambda _count: None,
) -> Iterator[EmbeddedBlock]:
    """Yield the texts of a corpus with their embeddings, block by block, as the options say."""
    from regionmarker.corpus import MissingColumnError, read_embedded

    if encoder is not None and embedding_column is not None:
        raise InputError("give --encoder or --embedding-column, not both: the embeddings come from one of them")
    try:
        yield from read_embedded(
            path, encoder, text_column=text_column, embedding_column=embedding_column, most=most, on_texts=on_texts
        )
    except MissingColumnError as error:
        raise InputError(_which_option(error, named=embedding_column is not None)) from None


def _which_option(error: MissingColumnError, *, named: bool) -> str:
    if error.holds_texts:
        return f"{error}: name the column of the texts with --text-column"
    if named:
        return f"{error}: give another --embedding-column, or --encoder"
    others = f", or --embedding-column with one of its columns {', '.join(error.there)}" if error.there[1:] else ""
    return f"{error.where} has no embedding column: give --encoder, for example --encoder wordllama{others}"
