"""Readers for a first look, each with a fault."""

from __future__ import annotations

import os

from regionmarker.errors import MissingExtraError


class PanicError(BaseException):
    """As the bindings of libraries in Rust raise it: no Exception."""


def missing_extra() -> None:
    raise MissingExtraError.for_module("pylance", "lance")


def panic() -> None:
    raise PanicError("a panic\nwith a second line")


def loud() -> None:
    print("{}")
    os.write(1, b"{}\n")


def without_variable(variable: str) -> None:
    if variable in os.environ:
        raise ValueError(f"{variable} is there")


def crash(**_options: object) -> None:
    os.abort()
