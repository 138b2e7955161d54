"""One family under atheris: `python -m fuzz.engine FAMILY [libFuzzer's own options] CORPUS…`."""

from __future__ import annotations

import importlib
import sys

import atheris


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer's options say that it is enough."""
    family, *options = arguments
    with atheris.instrument_imports(include=["lessor", "fuzz"]):
        one = importlib.import_module(f"fuzz.{family}").one
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
