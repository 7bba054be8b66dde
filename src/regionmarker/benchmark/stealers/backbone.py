"""The published kind of stealer: full fine-tuning of a transformer; torch is loaded when it steals."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regionmarker.benchmark.stealers.base import TrainingSplit, check_clean, check_training_data, fidelity, split
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.measures import row_cosines
from regionmarker.progress import Progress
from regionmarker.vectors import Floats

if TYPE_CHECKING:
    from regionmarker.benchmark.stealers.answer_heads import Head
    from regionmarker.benchmark.stealers.backbone_model import BackboneModel
    from regionmarker.benchmark.stealers.training import Checkpoint
    from regionmarker.benchmark.stealers.transformer import Transformer

POOLINGS = ("auto", "pooler", "last", "mean", "first")
"""What is taken of the backbone's output."""

RECIPES = ("tuned", "published")

Say = Callable[[str], None]

_WARM_UP, _CLIP, _CHUNK = 50, 1.0, 512  # of the recipe "tuned"
_HIDDEN, _HEAD_RATE = 1024, 1e-3


class Backbone:
    """A stealer that fine-tunes a whole transformer.

    The recipe ``tuned`` starts from the ridge solution on the frozen model and tunes head and body together: batches of
    texts of like length, squared distance, AdamW without weight decay, warm-up and linear decay, gradients cut at
    length 1. The recipe ``published`` is that of the published scripts: a head drawn at random, batches at random, one
    rate that falls linearly to 0. It needs more texts and passes to come as far. A GPU is used where torch finds one.

    Parameters
    ----------
    model
        A name on the Hugging Face hub, such as ``bert-base-cased`` or ``Qwen/Qwen2-0.5B``, a folder, or a GGUF file.
    recipe
        ``"tuned"`` or ``"published"``.
    epochs, batch_size, learning_rate, max_length
        As usual; texts are cut to ``max_length`` tokens. With the recipe ``tuned``, 0 epochs leave the ridge solution.
    hidden
        Units of the head's hidden layer; None for 1,024, and with the recipe ``published`` for as many as the answers
        are wide.
    head_rate
        The head's own learning rate; None for 0.001, and with the recipe ``published`` for the learning rate.
    pooling
        ``"pooler"``, ``"last"``, ``"mean"`` or ``"first"``: what is taken of the backbone. ``"auto"`` takes what the
        model's folder says, else the last token of a decoder and the mean of an encoder; with the recipe ``published``
        the pooled output of an encoder that has one.
    freeze_words, freeze_layers
        Leave word vectors, or this many of the lowest layers with them, as they are: less memory, less time.
    patience
        Stop after this many passes without a better one; the best is kept.
    held_out
        The share of the texts that is not trained on: half of it steers, half of it measures.
    checkpoint
        A file in which the training keeps its state, so that a killed one goes on where it was and to the same result;
        it is deleted at the end. A folder that exists is given a file of each training's own.
    checkpoint_every
        How many steps are lost at the most.
    copies
        A folder that keeps every trained copy, so that the same training is not done twice.
    device
        ``"cpu"``, ``"cuda"``, ...; None for a GPU where there is one.
    threads
        How many threads torch uses; None leaves that to torch. Results are the same to the bit only for the same
        number.
    seed
        Decides everything that is drawn.
    progress
        Called after each step with the number done and the number in all.
    say
        Called with what is going to happen, such as how much memory the training takes.

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

    keeps_trainings: ClassVar[bool] = True
    """A grid gives it ``checkpoint``, ``copies``, ``progress`` and ``say``."""

    def __init__(
        self,
        model: str,
        *,
        recipe: str = "tuned",
        epochs: int = 3,
        batch_size: int = 32,
        learning_rate: float = 5e-5,
        max_length: int = 128,
        hidden: int | None = None,
        head_rate: float | None = None,
        pooling: str = "auto",
        freeze_words: bool = False,
        freeze_layers: int = 0,
        patience: int = 2,
        held_out: float = 0.1,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 200,
        copies: str | Path | None = None,
        device: str | None = None,
        threads: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        say: Say | None = None,
    ) -> None:
        for module in ("torch", "transformers"):
            if find_spec(module) is None:
                raise MissingExtraError.for_module(module, "sentence-transformers")
        if recipe not in RECIPES:
            raise InputError(f"recipe must be one of {', '.join(RECIPES)}, but is {recipe!r}")
        least = 0 if recipe == "tuned" else 1
        if min(batch_size, patience, checkpoint_every) < 1 or min(epochs, 1 if hidden is None else hidden) < least:
            raise InputError(
                "batch_size, patience and checkpoint_every must be at least 1, epochs and hidden too; "
                "recipe=tuned allows 0 of the last two"
            )
        if max_length < 2 or not learning_rate > 0 or seed < 0 or freeze_layers < 0:
            raise InputError(
                "max_length must be at least 2, learning_rate positive, seed and freeze_layers not negative"
            )
        if head_rate is not None and not head_rate > 0:
            raise InputError(f"head_rate must be positive, but is {head_rate}")
        if pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}, but is {pooling!r}")
        if model.startswith((".", "/", "~")) and not Path(model).expanduser().exists():
            raise InputError(f"there is no folder {model}: give a model's folder or its name on the Hugging Face hub")
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, but is {threads}")
        self.model, self.recipe, self.epochs, self.batch_size = model, recipe, epochs, batch_size
        self.learning_rate, self.head_rate = learning_rate, head_rate
        self.max_length, self.hidden, self.pooling, self.patience = max_length, hidden, pooling, patience
        self.freeze_words, self.freeze_layers = freeze_words, freeze_layers
        self.held_out, self.checkpoint, self.checkpoint_every = held_out, checkpoint, checkpoint_every
        self.copies, self.device, self.threads, self.seed = copies, device, threads, seed
        self.progress, self.say = progress, say or (lambda _: None)

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> Backbone:
        if not rest:
            raise InputError("name the backbone: backbone:NAME, such as backbone:bert-base-cased")
        return cls(rest, **options)

    @property
    def name(self) -> str:
        path = Path(self.model).expanduser()
        if path.suffix == ".gguf":
            path = path.parent
        return f"backbone ({path.name if path.is_dir() else self.model})"

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
        from regionmarker.benchmark.stealers.training import Training, squared_distance
        from regionmarker.benchmark.stealers.transformer import tokenise

        targets, answers = rows[parts.train], rows[parts.steer]
        network, tokenizer = self._start(targets.shape[1])
        tokens = tokenise(tokenizer, [texts[row] for row in parts.train], self.max_length)
        judged = tokenise(tokenizer, [texts[row] for row in parts.steer], self.max_length)
        digest = self._digest(network, tokens, targets)
        kept = None if self.copies is None else Path(self.copies) / digest[:32]
        if kept is not None and kept.is_dir():
            self.say(f"{self.name}: trained before, {kept} is used")
            return BackboneModel.load(kept)
        state = self._state(digest)
        self._tell(network, tokens)
        if self.recipe == "tuned" and (state is None or not state.path.exists()):
            self._solve(network, tokens, targets, judged, answers)
        tuned = self.recipe == "tuned"
        training = Training(
            network,
            tokens,
            squared_distance(targets, of="rows" if tuned else "numbers"),
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.seed,
            patience=self.patience,
            checkpoint=state,
            every=self.checkpoint_every,
            progress=self.progress,
            head_rate=self.head_rate or (_HEAD_RATE if tuned else None),
            warm_up=_WARM_UP if tuned else 0,
            clip=_CLIP if tuned else 0.0,
            chunk=_CHUNK if tuned else 0,
        )
        training.run(lambda: float(row_cosines(network.answers(judged, self.batch_size), answers).mean()))
        model = BackboneModel(self.name, network, tokenizer, self.max_length, training.history)
        if kept is not None:
            model.save(kept)
        if state is not None:
            state.remove()
        return model

    def _start(self, width: int) -> tuple[Transformer, Any]:
        """Load the backbone and draw the head, and whatever of the backbone was never trained."""
        import torch

        from regionmarker.benchmark.stealers.answer_heads import PublishedHead, SolvedHead
        from regionmarker.benchmark.stealers.transformer import Transformer, load_pretrained, own_pooling

        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            body, tokenizer = load_pretrained(self.model)
            size, pooler = int(body.config.hidden_size), getattr(body, "pooler", None)
            head: Head
            if self.recipe == "published":
                head = PublishedHead(size, width, self.hidden or width)
            else:
                head = SolvedHead(size, width, _HIDDEN if self.hidden is None else self.hidden)
        pooling = self.pooling
        if pooling == "auto":
            folder = Path(self.model).expanduser()
            pooling = own_pooling(body, folder if folder.is_dir() else None)
            if self.recipe == "published" and pooler is not None and pooling != "last":
                pooling = "pooler"
        if pooling == "pooler" and pooler is None:
            raise InputError(f"{self.model} has no pooled output: give pooling=auto, last, mean or first")
        network = Transformer(body, head, pooling)
        network.freeze(self.freeze_layers, words=self.freeze_words)
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        return network.to(device), tokenizer

    def _state(self, digest: str) -> Checkpoint | None:
        from regionmarker.benchmark.stealers.training import Checkpoint

        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint)
        return Checkpoint(path / f"{digest[:32]}.safetensors" if path.is_dir() else path, digest)

    def _tell(self, network: Transformer, tokens: list[list[int]]) -> None:
        """Say how much memory the training takes, before it does."""
        from regionmarker.benchmark.stealers.footprint import Footprint

        if not self.epochs:
            return
        footprint = Footprint.of(network, self.batch_size, max(map(len, tokens)))
        self.say(f"{self.name}: training {len(tokens)} texts takes about {footprint}")
        if network.device.type == "cpu":
            footprint.check(self.name)

    def _solve(
        self, network: Transformer, tokens: list[list[int]], targets: Floats, judged: list[list[int]], answers: Floats
    ) -> None:
        """Start the head at the ridge solution on what the frozen backbone says."""
        features = network.features(tokens + judged, self.batch_size)
        score = network.head.solve(features[: len(tokens)], targets, features[len(tokens) :], answers)  # type: ignore[operator]
        self.say(f"{self.name}: the ridge solution on the frozen model has fidelity {score:.3f}")

    def _digest(self, network: Transformer, tokens: list[list[int]], targets: Floats) -> str:
        """Return a digest of everything that decides the training, the weights that it starts from included."""
        settings = [
            self.recipe, self.epochs, self.batch_size, self.learning_rate, self.head_rate, self.patience, self.seed,
            network.pooling, self.max_length, self.held_out, self.freeze_words, self.freeze_layers,
        ]  # fmt: skip
        sums = [[name, float(tensor.detach().double().sum())] for name, tensor in network.named_parameters()]
        digest = sha256(json.dumps([settings, sums, tokens]).encode())
        digest.update(targets.tobytes())
        return digest.hexdigest()
