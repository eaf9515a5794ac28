"""`python -m leat ...` is the command `leat`: the one of this package, wherever it lies."""
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
    sys.exit("leat: the command is not installed beside this package")


if __name__ == "__main__":
    main()
