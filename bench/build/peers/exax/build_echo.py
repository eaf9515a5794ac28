"""BENCH_COUNT jobs of the method echo: a build script of Exax."""
import os


def main(urd):
    for i in range(int(os.environ["BENCH_COUNT"])):
        urd.build("echo", i=i)
