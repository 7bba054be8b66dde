"""The published stealer: full fine-tuning of a Hugging Face backbone; torch is loaded when it steals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regionmarker.benchmark.stealers.base import TrainingSplit, check_clean, check_training_data, fidelity, split
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.measures import row_cosines
from regionmarker.progress import Progress
from regionmarker.vectors import Floats

if TYPE_CHECKING:
    from regionmarker.benchmark.stealers.backbone_model import BackboneModel
    from regionmarker.benchmark.stealers.transformer import Transformer

POOLINGS = ("auto", "pooler", "last", "mean", "first")
"""What is taken of the backbone's output."""


class Backbone:
    """A stealer that fine-tunes a whole transformer, as the published ones do.

    Pooled output, Linear, ReLU, Linear, normalised; squared distance to the served vectors; AdamW without weight decay,
    its rate falling linearly to 0. The defaults are those of the published scripts. Expect about ten sentences per
    second and pass for a model of the size of MiniLM on two cores; a GPU is used where torch finds one.

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
        Stop after this many passes without a better one; the best is kept.
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
        if pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, but is {pooling!r}")
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, but is {threads}")
        self.model, self.epochs, self.batch_size, self.learning_rate = model, epochs, batch_size, learning_rate
        self.max_length, self.hidden, self.pooling, self.patience = max_length, hidden, pooling, patience
        self.held_out, self.checkpoint, self.checkpoint_every = held_out, checkpoint, checkpoint_every
        self.device, self.threads, self.seed, self.progress = device, threads, seed, progress

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> Backbone:
        if not rest:
            raise InputError("name the backbone: backbone:NAME, such as backbone:bert-base-cased")
        return cls(rest, **options)

    @property
    def name(self) -> str:
        return f"backbone ({Path(self.model).name if Path(self.model).is_dir() else self.model})"

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> BackboneModel:
        from regionmarker.benchmark.stealers.training import threads

        texts, rows = check_training_data(texts, targets)
        parts = split(len(rows), held_out=self.held_out, seed=self.seed, texts=texts)
        held = parts.measure
        truth = check_clean(clean, len(rows), held)
        with threads(self.threads):
            model = self._train(texts, rows, parts)
            answers = model.encode([texts[row] for row in held])
            model.fidelity = fidelity(answers, rows[held], clean=truth, seed=self.seed)
        return model

    def _train(self, texts: list[str], rows: Floats, parts: TrainingSplit) -> BackboneModel:
        from regionmarker.benchmark.stealers.backbone_model import BackboneModel
        from regionmarker.benchmark.stealers.training import Checkpoint, Training, squared_distance
        from regionmarker.benchmark.stealers.transformer import tokenise

        targets, answers = rows[parts.train], rows[parts.steer]
        network, tokenizer = self._start(targets.shape[1])
        tokens = tokenise(tokenizer, [texts[row] for row in parts.train], self.max_length)
        judged = tokenise(tokenizer, [texts[row] for row in parts.steer], self.max_length)
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
