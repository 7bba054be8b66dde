"""Everything that regionmarker raises on purpose.

    RegionMarkerError              exit code 2 unless a subclass says otherwise
    |-- InputError                 a text, a vector, a file or an option is not usable (also a ValueError)
    |   `-- NotFittedError         the marker holds no key yet (also an AttributeError)
    |-- KeyFileError               a key file cannot be opened or written
    |-- SecretLeakError            something tried to copy, pickle or print key material (also a TypeError)
    |-- MissingExtraError          an optional dependency is not installed (also an ImportError)
    `-- OutsideError               a server, a disk or a network failed; exit code 3

Messages are one sentence that names the file, the row or the option and says what to do. They never hold key
material, and they are shown to users as they are.
"""

from __future__ import annotations


class RegionMarkerError(Exception):
    """Base of all errors that regionmarker raises on purpose.

    Examples
    --------
    >>> issubclass(InputError, RegionMarkerError)
    True
    """

    exit_code = 2


class InputError(RegionMarkerError, ValueError):
    """A text, a vector, a file or an option that cannot be used as it is."""


class NotFittedError(InputError, AttributeError):
    """The marker has no key yet: call ``fit`` or ``load`` first."""


class KeyFileError(RegionMarkerError):
    """A key file that cannot be opened or written."""


class SecretLeakError(RegionMarkerError, TypeError):
    """Key material was about to be copied, pickled or printed."""


class MissingExtraError(RegionMarkerError, ImportError):
    """An optional dependency is not installed.

    Examples
    --------
    >>> str(MissingExtraError.for_module("numba", "fast"))
    'numba is not installed: pip install "regionmarker[fast]"'
    """

    @classmethod
    def for_module(cls, module: str, extra: str) -> MissingExtraError:
        """Name the module and the extra that brings it."""
        return cls(f'{module} is not installed: pip install "regionmarker[{extra}]"')


class OutsideError(RegionMarkerError):
    """The outside world failed: a server, a disk or a network."""

    exit_code = 3
