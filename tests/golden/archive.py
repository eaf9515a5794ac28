#!/usr/bin/env python3
"""archive.py: many small files in one tar file, with the same bytes whoever writes it.

    archive.py unpack STAMP ARCHIVE...      NAME.tar becomes the folder NAME beside STAMP; the build runs this
    archive.py add ARCHIVE NAME FILE        adds FILE to an archive as NAME, or replaces NAME

A maker in this folder fills an empty folder, which becomes an archive with the maker's name:

    HERE = archive.begin("tf")
    ...
    archive.finish(HERE)        # writes tests/golden/tf.tar, and says which files are not as they were

Entries are sorted by name. They have no times, no owners and no compression, which git does better: a maker
that writes the same files writes the same archive.
"""
import atexit
import io
import pathlib
import shutil
import sys
import tarfile
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent


def read(path):
    """The content of each file, by name."""
    with tarfile.open(path) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


def write(path, files):
    """Says which files are new, changed or gone."""
    before = read(path) if pathlib.Path(path).exists() else {}
    for name in sorted(before.keys() | files.keys()):
        if before.get(name) != files.get(name):
            print("new" if name not in before else "changed" if name in files else "gone", name)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))


def unpack(path, folder):
    """The folder then holds what the archive holds, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in read(path).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def begin(name, *beside):
    """An empty folder for a maker to fill. The archives in `beside` are unpacked next to it."""
    root = pathlib.Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for other in beside:
        unpack(GOLDEN / f"{other}.tar", root / other)
    (root / name).mkdir()
    return root / name


def finish(folder):
    """Writes all files of the folder to the archive with its name."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write(GOLDEN / f"{folder.name}.tar", files)


def main(command, *args):
    if command == "unpack":
        stamp = pathlib.Path(args[0])
        for path in map(pathlib.Path, args[1:]):
            unpack(path, stamp.parent / path.stem)
        stamp.touch()
    elif command == "add" and len(args) == 3:
        path, name, file = args
        write(path, read(path) | {name: pathlib.Path(file).read_bytes()})
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
