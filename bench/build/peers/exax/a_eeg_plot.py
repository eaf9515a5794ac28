"""plot_time.py or plot_matrix.py, as a method of Exax."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
import figure
import plot_matrix
import plot_time

depend_extra = (figure, plot_matrix, plot_time)
options = {"name": "time"}
jobs = ("group",)


def synthesis():
    figure.save({"time": plot_time, "matrix": plot_matrix}[options.name].draw(jobs.group.load()), options.name, options.name)
