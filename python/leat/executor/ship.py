"""This package on its way to nodes, so they need not have it installed."""
import os
import pathlib
import shutil
import tempfile
from typing import Callable, Dict, Optional, Tuple

import leat
from leat.executor import Settings

__all__ = ["NAME", "pack", "runner"]

NAME = "leat_package"  #: of the folder that is sent
Run = Callable[[str], Tuple[Optional[str], str]]


def pack() -> pathlib.Path:
    """A folder with this package and, from a wheel, the libraries beside it. The caller removes its parent."""
    here = pathlib.Path(leat.__file__).parent
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-"), NAME)
    for part in (here, here.with_name("leat.libs")):
        if part.is_dir():
            shutil.copytree(part, folder / part.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def runner(settings: Settings, find: Callable[[], str]) -> Run:
    """A function that runs a task on a node: it returns its result, or None and why there is none.

    It is pickled by value, being local, and so needs nothing but the folder that `find`, which must be local, too,
    returns there.
    """
    fields = tuple(settings)
    library = os.environ.get("LEAT_LIBRARY")  # of a source tree
    environment: Dict[str, str] = {"LEAT_LIBRARY": library} if library else {}

    def run(line: str) -> Tuple[Optional[str], str]:
        import os as node_os
        import sys

        node_os.environ.update(environment)
        folder = find()
        if node_os.path.isdir(folder) and folder not in sys.path:
            sys.path.insert(0, folder)
        from leat.executor import Settings as NodeSettings
        from leat.executor import node

        try:
            return node.run(NodeSettings(*fields), line), ""
        except node.Lost as error:
            return None, str(error)

    return run
