"""A spec string becomes an attack.

    none                              the control
    shift:PLACES                      truncate:KEEP (1024, 0.667 or 2/3)
    permute:SEED                      project:WIDTH:SEED
    tanh:GAIN                         rotate:SEED
    scale:FACTOR, scale:rows          translate:SEED:LENGTH
    noise:DEVIATION:SEED              round:DECIMALS
    zero:BELOW

These treat every vector alike, and may follow the training as well as precede it; what stands after the name may be
left away. The others look at all of the stolen data, and have settings with names, in any order and as many as differ
from the defaults, such as ``cse:clusters=10,components=20``:

    cse         clusters, components, pairs, method (kmeans, gmm), seed
    compress    keep (256 or 0.25), restore
    residuals   clusters, components, seed
    drop        by (residuals, pairs), tail (high, low), share, seed
    avoid       planes, cells, seed
    cover       share, clusters, seed
    mix         share, seed
    angles      planes, span, share, starts, steps, seed
    perturb     candidates, suffixes, tail (low, high, both), seed, then the pool: perturb:tail=high,wiki.txt
    compare     first, second, tolerance
    average     first, second
    paraphrase  most, floor, filter (served, public, none), then the paraphraser: paraphrase:floor=0.7,apertium

One works on the stolen model alone, after the training:

    finetune    objective (labels, simcse), epochs, batch, rate, limit, seed, folder, then the corpus:
                finetune:epochs=1,enron

Another package adds its own by an entry point of the group
``regionmarker.attacks``: its name stands before the colon, and it is a class with ``from_spec(rest)``, or anything
that may be called with what stands after the colon.
"""

from __future__ import annotations

from regionmarker.benchmark.protocols import DataAttack, ModelAttack
from regionmarker.errors import InputError
from regionmarker.specs import Registry

ATTACKS = Registry(
    "attack",
    "regionmarker.attacks",
    {
        "none": "regionmarker.benchmark.attacks.base:Nothing",
        "shift": "regionmarker.benchmark.attacks.transforms:Shift",
        "truncate": "regionmarker.benchmark.attacks.transforms:Truncate",
        "permute": "regionmarker.benchmark.attacks.transforms:Permute",
        "project": "regionmarker.benchmark.attacks.transforms:Project",
        "tanh": "regionmarker.benchmark.attacks.transforms:Tanh",
        "rotate": "regionmarker.benchmark.attacks.transforms:Rotate",
        "scale": "regionmarker.benchmark.attacks.transforms:Scale",
        "translate": "regionmarker.benchmark.attacks.transforms:Translate",
        "noise": "regionmarker.benchmark.attacks.transforms:Noise",
        "round": "regionmarker.benchmark.attacks.transforms:Round",
        "zero": "regionmarker.benchmark.attacks.transforms:Zero",
        "cse": "regionmarker.benchmark.attacks.cse:CSE",
        "compress": "regionmarker.benchmark.attacks.directions:Compress",
        "residuals": "regionmarker.benchmark.attacks.directions:Residuals",
        "drop": "regionmarker.benchmark.attacks.sampling:Drop",
        "avoid": "regionmarker.benchmark.attacks.sampling:Avoid",
        "cover": "regionmarker.benchmark.attacks.sampling:Cover",
        "mix": "regionmarker.benchmark.attacks.sampling:Mix",
        "angles": "regionmarker.benchmark.attacks.plane_search:Angles",
        "perturb": "regionmarker.benchmark.attacks.perturbation:Perturb",
        "compare": "regionmarker.benchmark.attacks.accounts:Compare",
        "average": "regionmarker.benchmark.attacks.accounts:Average",
        "paraphrase": "regionmarker.benchmark.attacks.paraphrase:Paraphrase",
        "finetune": "regionmarker.benchmark.attacks.fine_tuning:FineTune",
    },
)


def known_attacks() -> list[str]:
    """Return what may stand before the colon of a spec: the built-in attacks, then those of other packages.

    Examples
    --------
    >>> known_attacks()[:3]
    ['none', 'shift', 'truncate']
    """
    return ATTACKS.known()


def load_attack(spec: str | DataAttack | ModelAttack) -> DataAttack | ModelAttack:
    """Load an attack by its spec; an object that is one already is returned as it is.

    Examples
    --------
    >>> load_attack("shift:100")
    Shift(places=100)
    >>> load_attack("shuffle")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: unknown attack 'shuffle': give none, shift, truncate, permute, ...
    """
    if not isinstance(spec, str):
        if not isinstance(spec, DataAttack | ModelAttack):
            raise InputError(
                "an attack is a spec or an object with a name and apply(stolen) or modify(model), "
                f"but a {type(spec).__name__} was given"
            )
        return spec
    attack = ATTACKS.load(spec)
    if not isinstance(attack, DataAttack | ModelAttack):
        head = spec.partition(":")[0]
        raise InputError(
            f"the attack {head!r} must have a name and apply(stolen) or modify(model), but is a {type(attack).__name__}"
        )
    return attack
