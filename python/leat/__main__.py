"""`python -m leat ...` runs the `leat` command that belongs to this package."""
from __future__ import annotations

import os
import sys

from . import _lib


def main() -> None:
    command = os.path.join(os.path.dirname(_lib.library_path()), "leat")
    if not os.access(command, os.X_OK):
        sys.exit(f"leat: there is no leat command next to the library {_lib.library_path()}")
    os.execv(command, ["leat", *sys.argv[1:]])


if __name__ == "__main__":
    main()
