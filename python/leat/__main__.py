"""`python -m leat ...` runs the `leat` command that belongs to this package."""
from __future__ import annotations

import os
import sys
import sysconfig

from . import _lib


def main() -> None:
    beside = os.path.join(os.path.dirname(_lib.library_path()), "leat")  # in a build folder
    for path in (os.path.join(sysconfig.get_path("scripts"), "leat"), beside):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            os.execv(path, ["leat", *sys.argv[1:]])
    sys.exit("leat: the leat command is not installed with this package")


if __name__ == "__main__":
    main()
