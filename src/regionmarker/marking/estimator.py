"""scikit-learn's estimator contract, kept without importing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from regionmarker.errors import InputError


class Estimator:
    """What ``sklearn.base.clone``, ``Pipeline`` and ``GridSearchCV`` ask of an estimator.

    ``__init__`` stores its arguments under their own names and does nothing else; what is learned ends in ``_``.
    """

    @classmethod
    def _parameter_names(cls) -> tuple[str, ...]:
        return tuple(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters as they were given."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise InputError(f"{name!r} is not a parameter of {type(self).__name__}: use {', '.join(names)}")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags("transformer", TargetTags(required=False), transformer_tags=TransformerTags())

    def __repr__(self) -> str:
        # A seed makes the key: it is not printed.
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if name != "seed")
        return f"{type(self).__name__}({given})"
