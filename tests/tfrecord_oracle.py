#!/usr/bin/env python3
"""TFRecord files and tf.train.Example written and read from their definitions alone.

It shares no code with Leat and needs nothing but Python, so that what both agree on
is what the formats say:

    tfrecord_oracle.py write FILE     writes the records that tests/support/proto.h knows
    tfrecord_oracle.py dump FILE      prints each record's features, one a line, sorted by name
    tfrecord_oracle.py seeds FOLDER   writes the first inputs of the fuzzers
"""
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def records(content):
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert struct.unpack("<I", content[8:12])[0] == masked(content[:8]), "the header's checksum"
        data = content[12 : 12 + length]
        assert struct.unpack("<I", content[12 + length : 16 + length])[0] == masked(data), "the data's checksum"
        content = content[16 + length :]
        yield data


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def bytes_list(*values):
    return field(1, b"".join(field(1, value) for value in values))


def float_list(*values, packed=True):
    if packed:
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(2, b"".join(b"\x0d" + struct.pack("<f", value) for value in values))


def int64_list(*values, packed=True):
    if packed:
        return field(3, field(1, b"".join(varint(value) for value in values)))
    return field(3, b"".join(b"\x08" + varint(value) for value in values))


def example(features):
    return field(1, b"".join(field(1, field(1, key.encode()) + field(2, value)) for key, value in features))


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(message):
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        if tag & 7 == 0:
            value, at = read_varint(message, at)
        else:
            assert tag & 7 in (1, 2, 5)
            length = 8 if tag & 7 == 1 else 4
            if tag & 7 == 2:
                length, at = read_varint(message, at)
            value, at = message[at : at + length], at + length
            assert len(value) == length
        yield tag >> 3, tag & 7, value


def values(kind, message):
    for number, wire, value in fields(message):
        assert number == 1
        if kind == 1:
            yield value.hex() or "-"
        elif kind == 2:
            for (x,) in struct.iter_unpack("<f", value):
                yield repr(x)
        elif wire == 0:
            yield str(value - (value >> 63 << 64))
        else:
            at = 0
            while at < len(value):
                x, at = read_varint(value, at)
                yield str(x - (x >> 63 << 64))


def dump(path):
    with open(path, "rb") as f:
        content = f.read()
    for i, data in enumerate(records(content)):
        print(f"record {i}")
        features = {}
        for _, _, message in fields(data):
            for _, _, entry in fields(message):
                parts = {number: value for number, _, value in fields(entry)}
                features[parts[1].decode()] = parts[2]
        for key, feature in sorted(features.items()):
            for kind, _, message in fields(feature):
                name = (None, "bytes", "float", "int64")[kind]
                print(" ".join([key, name, *values(kind, message)]))


def known_records():
    yield example([])
    for i in range(1, 40):
        features = [
            ("image", bytes_list(bytes((i * 7 + k) & 0xFF for k in range(i * 5)))),
            ("label", int64_list(i * i * (-1) ** i, packed=i % 2 == 0)),
            ("tokens", int64_list(*[(1 << k) - i for k in range(i)], packed=i % 3 == 0)),
            ("box", float_list(i, i / 4, -i / 8, i * 1024, packed=i % 2 == 1)),
        ]
        yield example(features[i % 4 :] + features[: i % 4])


def write(path):
    with open(path, "wb") as f:
        f.write(b"".join(record(data) for data in known_records()))


def seeds(folder):
    small = example([("image", bytes_list(b"\xff\xd8")), ("label", int64_list(-1, 300)), ("box", float_list(0.5, 2))])
    unpacked = example([("label", int64_list(7, packed=False)), ("box", float_list(1, packed=False)), ("image", b"")])
    other = field(1, b"") + varint(9 << 3) + varint(5) + varint(10 << 3 | 5) + b"abcd" + small
    rows = [record(b"first"), record(b""), record(b"third one"), record(small)]
    torn = rows[0] + rows[2][:-6] + rows[1] + rows[3]
    offsets = struct.pack("<4Q", 0, 20, 60 | 1 << 63, 100)
    head = struct.pack("<8sI", b"LEATIDX\n", 2)
    rest = struct.pack("<8sQqQQQ", b"tfrecord", 100, 5, 3, 40, 1) + offsets
    seeds = {
        "example/small": small,
        "example/unpacked": unpacked,
        "example/other": other,
        "tfrecord/good": b"".join(rows),
        "tfrecord/torn": torn,
        "tfrecord/cut": b"".join(rows)[:-3],
        "tfrecord/lookalike": record(rows[0] + rows[1])[:-1] + b"x" + rows[2],
        "index/good": head + struct.pack("<I", crc32c(head + rest)) + rest,
    }
    for name, content in seeds.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content)


if __name__ == "__main__":
    {"write": write, "dump": dump, "seeds": seeds}[sys.argv[1]](sys.argv[2])
