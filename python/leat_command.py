#!python
# Runs the `leat` command of the package. Finding the package does not import it, so NumPy is not loaded.
import importlib.util
import os
import sys

package = importlib.util.find_spec("leat")
if package is None:
    sys.exit("leat: Python does not find the leat package; if it was installed with --target, set PYTHONPATH")
os.execv(os.path.join(os.path.dirname(package.origin), "leat"), sys.argv)
