"""What all contenders take: Leat's specs, in which {0} is the folder with the data, and what a batch looks like."""
LENGTH, TOKENS_BATCH = 1024, 32
DIGITS_BATCH = 128
RECORDS_BATCH = 256
RECORD = 1024
FRAMED = RECORD + 16  # bytes of a record in a TFRecord file
BLOCK, WINDOW = 1024, 16  # of shuffle(block=, window=)
MISSING = 77  # exit code of peer.py: the library is not installed

TOKENS = f"tokens('{{0}}/tokens.bin', length={LENGTH}) | shuffle | batch({TOKENS_BATCH})"
DIGITS = f"npy(x='{{0}}/x.npy', y='{{0}}/y.npy') | cast(float32, field=x) | shuffle | batch({DIGITS_BATCH})"
TINY = "npy(x='{0}/tiny.npy') | batch({1})"
RECORDS = {
    "in order": f"tfrecord('{{0}}/records-*.tfrecord') | batch({RECORDS_BATCH})",
    "in blocks": f"tfrecord('{{0}}/records-*.tfrecord') | shuffle(block={BLOCK}, window={WINDOW}) | batch({RECORDS_BATCH})",
    "shuffled": f"tfrecord('{{0}}/records-*.tfrecord') | shuffle | batch({RECORDS_BATCH})",
}

# Types and shapes of the arrays of a batch; a peer may have one of several.
WANTED = {
    "tokens": ([("int32", (TOKENS_BATCH, LENGTH))], [("int64", (TOKENS_BATCH, LENGTH))]),
    "digits": ([("float32", (DIGITS_BATCH, 28, 28)), ("int64", (DIGITS_BATCH,))],),
}
