"""examples/eeg as jobs of Exax."""
import os


def main(urd):
    sizes = {"raw": os.environ["BENCH_RAW"], "subjects": int(os.environ["BENCH_SUBJECTS"])}
    bins = int(os.environ["BENCH_BINS"])
    decode = urd.build("eeg_decode", bins=bins, **sizes)
    generalise = urd.build("eeg_generalise", decode=decode, bins=bins, **sizes)
    permute = urd.build("eeg_permute", generalise=generalise, **sizes)
    group = urd.build("eeg_group", permute=permute)
    for name in "time", "matrix":
        urd.build("eeg_plot", group=group, name=name)
