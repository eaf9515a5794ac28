#!/usr/bin/env python3
"""make_folder.py: in which order torchvision's ImageFolder takes the files of a folder.

Makes a tree of empty files and lists it by ImageFolder's rules: a class is a folder, in
the order of sorted names; its files are those of sorted(os.walk(class, followlinks=True)), sorted by name in each folder, whose
lower-case name ends in the extension of an image that Leat decodes. torchvision itself is not needed.

Writes tests/golden/folder.tar: tree.txt, all files of the tree, and order.txt, a label and a path in
each line.
"""
import os
import tempfile

import archive

EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp")

TREE = """
cat/10.jpg
cat/2.jpg
cat/1.jpg
cat/B.jpg
cat/a.jpg
cat/a/x.png
cat/a/x/deep/y.png
cat/a-1/x.png
cat/a.d/x.png
cat/a/b.jpg
cat/notes.txt
cat/a/notes.md
Cat/1.JPEG
Cat/1.jpeg.txt
Cat/.jpg
Cat/.hidden.png
.hidden/1.png
dog house/1 2.jpg
dog house/upper.PnG
dog-house/1.bmp
dog-house/1.pgm
dog-house/1.ppm
dog-house/1.tif
dog-house/1.tiff
dog-house/1.webp
dog-house/1.gif
dog-house/jpg
dog-house/1.jpg.bak
\u00e9t\u00e9/\u00e8.jpg
\u00e9t\u00e9/z.jpg
10/1.jpg
9/1.jpg
readme.txt
1.jpg
""".split("\n")[1:-1]


def order(root):
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    for label, name in enumerate(classes):
        for folder, _, files in sorted(os.walk(os.path.join(root, name), followlinks=True)):
            for file in sorted(files):
                if file.lower().endswith(EXTENSIONS):
                    yield label, os.path.relpath(os.path.join(folder, file), root)


def main():
    here = archive.begin("folder")
    with tempfile.TemporaryDirectory() as root:
        for path in TREE:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            open(os.path.join(root, path), "w").close()
        lines = [f"{label} {path}" for label, path in order(root)]
    for name, content in (("tree.txt", TREE), ("order.txt", lines)):
        (here / name).write_text("\n".join(content) + "\n", encoding="utf-8")
    archive.finish(here)


main()
