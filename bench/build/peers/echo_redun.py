"""COUNT commands, as tasks of redun."""
import subprocess

from redun import File, task

redun_namespace = "echo"


@task()
def echo(i: int) -> File:
    subprocess.run(["sh", "-c", f"echo {i} >out/{i}"], check=True)
    return File(f"out/{i}")


@task()
def main(count: int) -> list:
    return [echo(i) for i in range(count)]
