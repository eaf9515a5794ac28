"""A command, as a method of Exax."""
import subprocess

options = {"i": 0}


def synthesis():
    subprocess.run(["sh", "-c", f"echo {options.i} >out"], check=True)
