"""`python -m leat ...` runs the `leat` command that belongs to this package."""
from __future__ import annotations

import os
import sys

from . import _lib


def main() -> None:
    command = _lib.command_path()
    if command is None:
        sys.exit(f"leat: there is no leat command next to the library {_lib.library_path()}")
    os.execv(command, ["leat", *sys.argv[1:]])


if __name__ == "__main__":
    main()
