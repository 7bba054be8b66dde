"""A copy that is a whole transformer: it answers, is saved and loaded, and may be trained on."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regionmarker.benchmark.stealers.base import Fidelity, check_clean, check_material, fidelity, split
from regionmarker.benchmark.stealers.training import Checkpoint, Objective, Training, threads
from regionmarker.benchmark.stealers.transformer import Transformer, load_pretrained, quiet, tokenise
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.measures import row_cosines
from regionmarker.progress import Progress
from regionmarker.vectors import Floats

if TYPE_CHECKING:
    from regionmarker.benchmark.stealers.transformer import Transformer

_ABOUT, _HEAD = "regionmarker.json", "regionmarker_head.safetensors"
_BATCH = 64  # texts that are answered at a time


class BackboneModel:
    """A copy that is a transformer with a head."""

    def __init__(
        self, name: str, network: Transformer, tokenizer: Any, max_length: int, history: Sequence[float] = ()
    ) -> None:
        self.name = name
        self.fidelity: Fidelity
        self.history = tuple(history)
        """Mean cosine on the texts that steered: of the start, then after each pass."""
        self._network, self._tokenizer, self._max_length = network, tokenizer, max_length

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Answer as the provider would: (n, D') float32, rows of unit length."""
        texts = check_texts(texts)
        if not texts:
            return np.empty((0, self._network.width), dtype=np.float32)
        return self._network.answers(tokenise(self._tokenizer, texts, self._max_length), _BATCH)

    def trained_on(
        self,
        texts: Sequence[str],
        objective: Objective,
        *,
        parameters: Sequence[Tensor] = (),
        epochs: int = 3,
        batch_size: int = 32,
        learning_rate: float = 5e-5,
        seed: int = 0,
        threads_used: int | None = None,
        progress: Progress | None = None,
    ) -> BackboneModel:
        """Return a copy of the model that was trained further; the model itself stays as it is.

        Parameters
        ----------
        texts
            What it is trained on.
        objective
            The loss of a batch, ``objective(embed, rows)``: ``embed()`` gives the batch's vectors (b, D') as a tensor,
            with dropout, so calling it twice gives two views; ``rows`` are the places of its texts.
        parameters
            What is trained besides, such as the classifier of a task.
        epochs, batch_size, learning_rate, seed, threads_used, progress
            As for :class:`~regionmarker.benchmark.stealers.backbone.Backbone`.

        Returns
        -------
        BackboneModel
            Its ``fidelity`` is still that of the theft.
        """
        texts = check_texts(texts)
        if not texts or epochs < 1 or batch_size < 1 or not learning_rate > 0:
            raise InputError(
                "training on needs texts, at least 1 epoch, batch_size of at least 1, positive learning_rate"
            )
        network = deepcopy(self._network)
        tokens = tokenise(self._tokenizer, texts, self._max_length)
        with threads(threads_used):
            Training(
                network, tokens, objective, epochs, batch_size, learning_rate, seed, parameters, progress=progress
            ).run()
        model = BackboneModel(f"{self.name}, trained on", network, self._tokenizer, self._max_length, self.history)
        model.fidelity = self.fidelity
        return model

    def save(self, folder: str | Path) -> None:
        """Write the copy as a folder that transformers can read, with the head beside; it must not exist yet."""
        from safetensors.torch import save_file

        folder = Path(folder)
        if folder.exists():
            raise InputError(f"{folder} exists already: name another folder")
        temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
        about = {
            "name": self.name,
            "pooling": self._network.pooling,
            "max_length": self._max_length,
            "history": self.history,
            "fidelity": asdict(self.fidelity),
        }
        try:
            with quiet():
                self._network.body.save_pretrained(temporary)
                self._tokenizer.save_pretrained(temporary)
            save_file(self._network.head(), temporary / _HEAD)
            (temporary / _ABOUT).write_text(json.dumps(about))
            temporary.replace(folder)
        except OSError as error:
            raise OutsideError(f"cannot write {folder}: {error.strerror or error}; nothing was changed") from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | Path) -> BackboneModel:
        """Read a copy that :meth:`save` has written."""
        from safetensors.torch import load_file

        folder = Path(folder)
        if not (folder / _ABOUT).is_file():
            raise InputError(f"{folder} holds no stolen model: give a folder that save has written")
        try:
            about = json.loads((folder / _ABOUT).read_text())
            head = load_file(folder / _HEAD)
            sizes = head["second.weight"].shape  # (D', h)
            body, tokenizer = load_pretrained(str(folder.resolve()))
            network = Transformer(body, sizes[0], sizes[1], about["pooling"])
            network.load_state_dict(network.state_dict() | head)
            model = cls(about["name"], network.eval(), tokenizer, about["max_length"], about["history"])
            model.fidelity = Fidelity(**about["fidelity"])
        except (KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
            raise InputError(f"the stolen model in {folder} is damaged: {type(error).__name__}") from None
        return model


def squared_distance(targets: Floats) -> Objective:
    """Return the published objective: the mean over all numbers of (S(x) - y)^2, targets (n, D')."""
    answers = torch.from_numpy(targets)

    def loss(embed: Any, rows: Any) -> Tensor:
        given: Tensor = embed()
        return torch.nn.functional.mse_loss(given, answers[rows].to(given.device))

    return loss


# The published stealer: full fine-tuning of a Hugging Face backbone.


class Backbone:
    """A stealer that fine-tunes a whole transformer, as the published ones do.

    Pooled output, Linear, ReLU, Linear, normalised; squared distance to the served vectors; AdamW without weight decay,
    its rate falling linearly to 0. The defaults are those of the published scripts. Expect about ten sentences a second
    and pass for a model of the size of MiniLM on two cores; a GPU is used where torch finds one.

    Parameters
    ----------
    model
        A name on the Hugging Face hub, such as ``bert-base-cased`` or ``Qwen/Qwen2-0.5B``, or a folder.
    epochs, batch_size, learning_rate, max_length
        As usual; texts are cut to ``max_length`` tokens.
    hidden
        Units of the head's hidden layer; None for as many as the answers are wide.
    pooling
        ``"auto"``, ``"pooler"``, ``"last"``, ``"mean"`` or ``"first"``: what is taken of the backbone.
    patience
        Stop after so many passes without a better one; the best is kept.
    held_out
        The share of the texts that is not trained on: half of it steers, half of it measures.
    checkpoint
        A file in which the training keeps its state, so that a killed one goes on where it was and to the same result;
        it is deleted at the end.
    checkpoint_every
        How many steps are lost at the most.
    device
        ``"cpu"``, ``"cuda"``, ...; None for a GPU where there is one.
    threads
        How many threads torch uses; None leaves that to torch. Results are the same to the bit only for the same
        number.
    seed
        Decides everything that is drawn.
    progress
        Called after each step with the number done and the number in all.

    Examples
    --------
    >>> from regionmarker.benchmark.stealers import load_stealer
    >>> from regionmarker.errors import MissingExtraError
    >>> try:
    ...     name = load_stealer("backbone:bert-base-cased,epochs=10").name  # loads nothing yet
    ... except MissingExtraError:  # no torch here
    ...     name = "backbone (bert-base-cased)"
    >>> name
    'backbone (bert-base-cased)'
    """

    def __init__(
        self,
        model: str,
        *,
        epochs: int = 3,
        batch_size: int = 32,
        learning_rate: float = 5e-5,
        max_length: int = 128,
        hidden: int | None = None,
        pooling: str = "auto",
        patience: int = 2,
        held_out: float = 0.1,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 200,
        device: str | None = None,
        threads: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        for module in ("torch", "transformers"):
            if find_spec(module) is None:
                raise MissingExtraError.for_module(module, "sentence-transformers")
        if min(epochs, batch_size, patience, checkpoint_every, 1 if hidden is None else hidden) < 1:
            raise InputError("epochs, batch_size, patience, checkpoint_every and hidden must be at least 1")
        if max_length < 2 or not learning_rate > 0 or seed < 0:
            raise InputError("max_length must be at least 2, learning_rate positive, seed not negative")
        if pooling not in ("auto", "pooler", "last", "mean", "first"):
            raise InputError(f"pooling must be auto, pooler, last, mean or first, but is {pooling!r}")
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, but is {threads}")
        self.model, self.epochs, self.batch_size, self.learning_rate = model, epochs, batch_size, learning_rate
        self.max_length, self.hidden, self.pooling, self.patience = max_length, hidden, pooling, patience
        self.held_out, self.checkpoint, self.checkpoint_every = held_out, checkpoint, checkpoint_every
        self.device, self.threads, self.seed, self.progress = device, threads, seed, progress

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> Backbone:
        """Load ``backbone:NAME``."""
        if not rest:
            raise InputError("name the backbone: backbone:NAME, such as backbone:bert-base-cased")
        return cls(rest, **options)

    @property
    def name(self) -> str:
        """``backbone (MODEL)``."""
        return f"backbone ({Path(self.model).name if Path(self.model).is_dir() else self.model})"

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> BackboneModel:
        """Train on texts and their targets (n, D'); ``clean`` is for the report and never learnt from."""
        from regionmarker.benchmark.stealers.training import threads

        texts, rows = check_material(texts, targets)
        truth = check_clean(clean, len(rows))
        parts = split(len(rows), held_out=self.held_out, seed=self.seed, texts=texts)
        held = parts.measure
        with threads(self.threads):
            model = self._train(
                [texts[row] for row in parts.train],
                rows[parts.train],
                [texts[row] for row in parts.steer],
                rows[parts.steer],
            )
            model.fidelity = fidelity(
                model.encode([texts[row] for row in held]),
                rows[held],
                clean=None if truth is None else truth[held],
                seed=self.seed,
            )
        return model

    def _train(self, texts: list[str], targets: Floats, steer: list[str], answers: Floats) -> BackboneModel:
        from regionmarker.benchmark.stealers.training import Training
        from regionmarker.benchmark.stealers.transformer import tokenise

        network, tokenizer = self._start(targets.shape[1])
        tokens = tokenise(tokenizer, texts, self.max_length)
        judged = tokenise(tokenizer, steer, self.max_length)
        state = None if self.checkpoint is None else Checkpoint(self.checkpoint, self._digest(network, tokens, targets))
        training = Training(
            network,
            tokens,
            squared_distance(targets),
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.seed,
            patience=self.patience,
            checkpoint=state,
            every=self.checkpoint_every,
            progress=self.progress,
        )
        training.run(lambda: float(row_cosines(network.answers(judged, self.batch_size), answers).mean()))
        if state is not None:
            state.remove()
        return BackboneModel(self.name, network, tokenizer, self.max_length, training.history)

    def _start(self, width: int) -> tuple[Transformer, Any]:
        """Load the backbone and draw the head, and whatever of the backbone was never trained."""
        import torch

        from regionmarker.benchmark.stealers.transformer import Transformer, load_pretrained

        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            body, tokenizer = load_pretrained(self.model)
            network = Transformer(body, width, self.hidden or width, self.pooling)
        if network.pooling == "pooler" and getattr(body, "pooler", None) is None:
            raise InputError(f"{self.model} has no pooled output: give pooling=auto, last, mean or first")
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        return network.to(device), tokenizer

    def _digest(self, network: Transformer, tokens: list[list[int]], targets: Floats) -> str:
        """Return a digest of everything that decides the training, the weights that it starts from included."""
        settings = [self.epochs, self.batch_size, self.learning_rate, self.patience, self.seed, network.pooling]
        sums = [[name, float(tensor.double().sum())] for name, tensor in network.named_parameters()]
        digest = sha256(json.dumps([settings, sums, tokens]).encode())
        digest.update(targets.tobytes())
        return digest.hexdigest()
