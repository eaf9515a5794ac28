# examples/eeg as rules of Snakemake: the same programs, with their files as inputs.
SUBJECTS = range(1, int(config["subjects"]) + 1)
BINS = range(1, int(config["bins"]) + 1)

rule all:
    input: "out/summary.csv", "out/plot_time", "out/plot_matrix"

rule decode:
    input: epochs="raw/subject-{subject}.npy", labels="raw/labels-{subject}.npy", code="decode.py"
    output: "out/decode/{subject}/{bin}"
    shell: "python {input.code} {input.epochs} {input.labels} --bin {wildcards.bin} --seed 1 --out {output}"

rule generalise:
    input: decode=expand("out/decode/{{subject}}/{bin}", bin=BINS), epochs="raw/subject-{subject}.npy", code="generalise.py"
    output: "out/generalise/{subject}"
    shell: "python {input.code} out/decode/{wildcards.subject} {input.epochs} --out {output}"

rule permute:
    input: generalise="out/generalise/{subject}", labels="raw/labels-{subject}.npy", code="permute.py"
    output: "out/permute/{subject}"
    shell: "generalise={input.generalise} labels={input.labels} seed={wildcards.subject} out={output} python {input.code}"

rule group:
    input: permute=expand("out/permute/{subject}", subject=SUBJECTS), code="group.py"
    output: "out/group"
    shell: "permute=out/permute out={output} python {input.code}"

rule summary:
    input: group="out/group", code="summary.py"
    output: "out/summary.csv"
    shell: "python {input.code} {input.group} --out {output}"

rule plot:
    input: group="out/group", code="plot_{name}.py", figure="figure.py"
    output: directory("out/plot_{name}")
    shell: "python {input.code} {input.group} --out {output}"
