# COUNT commands, as rules of Snakemake.
rule all:
    input: expand("out/{i}", i=range(int(config["count"])))

rule echo:
    output: "out/{i}"
    shell: "echo {wildcards.i} >{output}"
