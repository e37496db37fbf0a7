"""Quantised blocks are those that the formats' descriptions say, number by number."""

import struct

import numpy as np

from byhand.formats.registry import FORMATS


def plain_q8_0(x) -> bytes:
    """Q8_0 number by number."""
    d = np.float32(max(map(abs, x))) / np.float32(127)
    q = [0 if d == 0 else float(np.float32(v) * (np.float32(1) / d)) for v in x]
    whole = [int(abs(v) + 0.5) * (1 if v >= 0 else -1) for v in q]
    return np.float16(d).tobytes() + struct.pack("32b", *whole)


def plain_q4_0(x) -> bytes:
    """Q4_0 number by number."""
    d = np.float32(max(x, key=abs)) / np.float32(-8)
    q = [8 if d == 0 else min(15, int(np.float32(v) * (np.float32(1) / d) + np.float32(8.5))) for v in x]
    return np.float16(d).tobytes() + bytes(q[i] | q[i + 16] << 4 for i in range(16))


def plain_q4_k(block: bytes) -> list[float]:
    """Q4_K number by number, with the scales' bits as the C code takes them apart."""
    d, m = np.frombuffer(block[:4], "<f2").astype(np.float32)
    s, q, x = block[4:16], block[16:], []
    for j in range(8):
        if j < 4:
            scale, least = s[j] & 63, s[j + 4] & 63
        else:
            scale, least = s[j + 4] & 15 | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4
        for i in range(32):
            nibble = q[32 * (j // 2) + i] >> 4 * (j % 2) & 15
            x.append(d * np.float32(scale) * np.float32(nibble) - m * np.float32(least))
    return x


def plain_q6_k(block: bytes) -> list[float]:
    """Q6_K number by number: in each half, 128 numbers from 64 low bytes and 32 high ones."""
    low, high, scales = block[:128], block[128:192], np.frombuffer(block[192:208], np.int8)
    d, x = np.frombuffer(block[208:], "<f2").astype(np.float32)[0], []
    for half in range(2):
        for group in range(4):
            for i in range(32):
                nibble = low[64 * half + 32 * (group % 2) + i] >> 4 * (group // 2) & 15
                q = nibble | (high[32 * half + i] >> 2 * group & 3) << 4
                at = 8 * half + 2 * group + i // 16
                x.append(d * np.float32(scales[at]) * np.float32(q - 32))
    return x


def test_blocks_are_packed_as_by_hand():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 32)).astype(np.float32)
    x[0], x[1], x[2] = 0, np.arange(-16, 16) / 8, np.where(np.arange(32) % 2, 0.5, -0.5)
    for name, plain in (("q8_0", plain_q8_0), ("q4_0", plain_q4_0)):
        assert FORMATS[name].packed(x).tobytes() == b"".join(map(plain, x.tolist())), name


def test_blocks_are_unpacked_as_by_hand():
    rng = np.random.default_rng(1)
    for name, plain, halves in (("q4_k", plain_q4_k, (0, 2)), ("q6_k", plain_q6_k, (208,))):
        kind = FORMATS[name]
        blocks = rng.integers(0, 256, (6, kind.size), dtype=np.uint8)
        for at in halves:
            blocks[:, at : at + 2] = rng.standard_normal((6, 1)).astype("<f2").view(np.uint8)
        found = kind.floats(blocks.reshape(-1))
        assert found.tolist() == [float(v) for block in blocks for v in plain(block.tobytes())], name
