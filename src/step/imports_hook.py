"""Writes down what a step's Python imports, so that Leat knows what its result depends on.

Python runs this file as sitecustomize, before the program. A finder at the front of sys.meta_path asks the others, and
appends a record for each module to LEAT_IMPORTS/PID: at once, so that workers which are killed or leave by os._exit have
written theirs. A record is a list of texts, each ended by NUL, and is ended by an empty one:

    python EXECUTABLE VERSION STDLIB    first of each process
    path FOLDER...                      sys.path, whenever it has changed, and the user's packages if there are none yet
    top NAME FILE                       a module looked for in sys.path; FILE is missing if it was not found
    sub NAME FILE FOLDER...             one looked for in a package's folders, unless it is in an installed package
    file FILE                           the program, a module that another finder found, or Python that was opened
    stamp FILE TEXT                     what the file was when it was loaded, unless it is in an installed package

Whatever goes wrong here, the program must not notice.
"""
import os
import sys


class LeatImports:
    def __init__(self, folder):
        self.folder = folder
        self.pid = None
        self.path = None
        self.stdlib = os.path.dirname(os.__file__) + "/"
        self.stdlib_names = getattr(sys, "stdlib_module_names", ())
        self.namespaces = set()
        self.before = set(sys.modules)
        self.seen = set()
        self.opened = set()
        self.program = None
        self.source = sys.modules["_frozen_importlib_external"].source_from_cache

    def write(self, *texts):
        data = b"".join([os.fsencode(text) + b"\0" for text in texts if text]) + b"\0"
        fd = os.open("%s/%d" % (self.folder, self.pid), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def begin(self):
        """Of each process: a fork is one, too."""
        if self.pid != os.getpid():
            self.pid = os.getpid()
            self.path = None
            self.write("python", sys.executable or "python3", sys.version.split()[0], self.stdlib)
        if self.path != sys.path:
            self.path = list(sys.path)
            self.write("path", *self.folders())
        if self.program is None:
            self.program = vars(sys.modules["__main__"]).get("__file__")
            if self.program:
                self.write("file", os.path.abspath(self.program))
                self.stamp(self.program)

    def folders(self):
        folders = [os.path.abspath(folder) for folder in self.path if isinstance(folder, str)]
        site = sys.modules.get("site")
        user = getattr(site, "USER_SITE", None)
        if getattr(site, "ENABLE_USER_SITE", None) and user and user not in folders:
            packages = [folder.endswith(("/site-packages", "/dist-packages")) for folder in folders]
            folders.insert(packages.index(True) if True in packages else len(folders), user)
        return folders

    def stamp(self, file):
        """A file outside of the snapshot may be edited while the program runs."""
        try:
            state = os.stat(file)
        except (OSError, ValueError):
            return
        self.write("stamp", os.path.abspath(file), "%d %d %d" % (state.st_ino, state.st_size, state.st_mtime_ns))

    def is_library(self, file):
        return file.startswith(self.stdlib) or "/site-packages/" in file or "/dist-packages/" in file

    def record(self, name, folders, spec):
        file = spec.origin if spec is not None else ""
        self.seen.add(name)
        if file in ("built-in", "frozen") or (spec is None and (name in self.stdlib_names or name == "usercustomize")):
            return
        if spec is not None and file is None:
            self.namespaces.add(name)
            return
        if folders is None or name.rpartition(".")[0] in self.namespaces and self.is_library(file):
            self.begin()
            self.write("top", name, file)
            if file and not self.is_library(file):
                self.stamp(file)
        else:
            folders = [folder for folder in folders if isinstance(folder, str)]
            if folders and not self.is_library(file or folders[0] + "/"):
                self.begin()
                self.write("sub", name.rpartition(".")[2], file or "-", *folders)
                if file:
                    self.stamp(file)

    def find_spec(self, name, path=None, target=None):
        spec = None
        finders = sys.meta_path
        for finder in finders[finders.index(self) + 1:] if self in finders else ():
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                break
        try:
            self.record(name, path, spec)
        except Exception:
            pass
        return spec

    def audit(self, event, args):
        """Python that runs without an import: runpy.run_path, exec(open(...).read()), spec_from_file_location."""
        if event != "open":
            return
        try:
            path, _, flags = args
            if isinstance(path, int) or (flags or 0) & (os.O_WRONLY | os.O_RDWR):
                return
            path = os.fsdecode(path)
            if path.endswith(".pyc"):
                path = self.source(path)
            if path.endswith(".py") and path not in self.opened and not self.is_library(path):
                self.begin()
                self.write("file", os.path.abspath(path))
                self.stamp(path)
                if os.path.isabs(path):
                    self.opened.add(path)
        except Exception:
            pass

    def sweep(self):
        """What other finders found, at the end of the program."""
        self.begin()
        for name, module in list(sys.modules.items()):
            file = vars(module).get("__file__") if type(module) is type(sys) else None
            if name in self.before or name in self.seen or not isinstance(file, str):
                continue
            if not self.is_library(file):
                self.write("file", os.path.abspath(file))
            elif "." not in name:
                self.write("top", name, file)


def leat_begin():
    folder = os.environ.get("LEAT_IMPORTS")
    if folder:
        import atexit

        imports = LeatImports(folder)

        def sweep():
            try:
                imports.sweep()
            except Exception:
                pass

        atexit.register(sweep)
        imports.begin()
        sys.meta_path.insert(0, imports)
        if hasattr(sys, "addaudithook"):
            sys.addaudithook(imports.audit)


def leat_chain(here):
    """Runs the sitecustomize that this one hides."""
    folders = [folder for folder in sys.path if os.path.abspath(folder) != here]
    sys.path[:] = folders
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    spec = finder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        module = sys.modules["_frozen_importlib"].module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


try:
    leat_begin()
except Exception:
    pass
leat_chain(os.path.dirname(os.path.abspath(__file__)))
