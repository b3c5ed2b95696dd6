"""Golden tables of thread-value maps, from the formulas of the manuals and not from layouts.

    python3 generate.py                              the tables of NVIDIA's instructions
    python3 generate.py --amd matrix_calculator.py   also those of AMD's, asked of AMD's matrix instruction calculator

A table is a line `fragment,NAME;NAME...` and then a line `lane,place,place...` for each lane, a place being `row/column` or
`row/column/block` (matrix, for ldmatrix) of the lane's value 0, 1, ... Places of B are `n/k`.
Sections are those of the PTX ISA 9.0.
"""

import re
import subprocess
import sys
from pathlib import Path


def write(path, tables):
    """Writes tables beside this file, those that are equal under one heading."""
    same = {}
    for name, rows in tables:
        text = "\n".join(
            ",".join([str(lane)] + ["/".join(map(str, p)) for p in places]) for lane, places in rows
        )
        same.setdefault(text, []).append(name)
    with open(Path(__file__).parent / path, "w") as out:
        for text, names in same.items():
            out.write("fragment," + ";".join(names) + "\n" + text + "\n")


def table(name, threads, values, formula):
    return name, [(t, [formula(t, i) for i in range(values)]) for t in range(threads)]


# 9.7.14.5.2 to 9.7.14.5.13: groupID and threadID_in_group.
def group(lane):
    return lane >> 2


def member(lane):
    return lane % 4


def a_tf32_f64(lane, i):
    """m16n8k4, m16n8k8, m16n8k16 of f64: rows alternate, columns advance by 4 with every second element."""
    return (group(lane) if i % 2 == 0 else group(lane) + 8, member(lane) + 4 * (i // 2))


def a_f16(lane, i):
    """m16n8k8 and m16n8k16: elements 0, 1, 4, 5 of row groupID, from element 4 on 8 columns further."""
    row = group(lane) if i in (0, 1, 4, 5) else group(lane) + 8
    return (row, member(lane) * 2 + (i & 1) + (8 if i >= 4 else 0))


def a_8bit(lane, i):
    row = group(lane) if 0 <= i < 4 or 8 <= i < 12 else group(lane) + 8
    return (row, member(lane) * 4 + (i & 3) + (16 if i >= 8 else 0))


def a_4bit(lane, i):
    row = group(lane) if 0 <= i < 8 or 16 <= i < 24 else group(lane) + 8
    return (row, member(lane) * 8 + (i & 7) + (32 if i >= 16 else 0))


def a_1bit(lane, i):
    row = group(lane) if 0 <= i < 32 or 64 <= i < 96 else group(lane) + 8
    return (row, member(lane) * 32 + (i & 0x1F) + (128 if i >= 64 else 0))


def b_tf32_f64(lane, i):
    return (group(lane), member(lane) + 4 * i)


def b_f16(lane, i):
    return (group(lane), member(lane) * 2 + (i & 1) + 8 * (i // 2))


def b_8bit(lane, i):
    return (group(lane), member(lane) * 4 + (i & 3) + 16 * (i // 4))


def b_4bit(lane, i):
    return (group(lane), member(lane) * 8 + (i & 7) + 32 * (i // 8))


def b_1bit(lane, i):
    return (group(lane), member(lane) * 32 + (i & 0x1F) + 128 * (i // 32))


def c_m8(lane, i):
    return (group(lane), member(lane) * 2 + i)


def c_m16(lane, i):
    return (group(lane) if i < 2 else group(lane) + 8, member(lane) * 2 + (i & 1))


def mma_sync():
    tables = [table("C m8n8", 32, 2, c_m8), table("C m16n8", 32, 4, c_m16)]
    shapes = [
        (8, 4, 64, a_tf32_f64, b_tf32_f64),
        (16, 4, 64, a_tf32_f64, b_tf32_f64),
        (16, 8, 64, a_tf32_f64, b_tf32_f64),
        (16, 16, 64, a_tf32_f64, b_tf32_f64),
        (16, 4, 32, a_tf32_f64, b_tf32_f64),
        (16, 8, 32, a_tf32_f64, b_tf32_f64),
        (16, 8, 16, a_f16, b_f16),
        (16, 16, 16, a_f16, b_f16),
        (8, 16, 8, a_8bit, b_8bit),
        (16, 16, 8, a_8bit, b_8bit),
        (16, 32, 8, a_8bit, b_8bit),
        (8, 32, 4, a_4bit, b_4bit),
        (16, 32, 4, a_4bit, b_4bit),
        (16, 64, 4, a_4bit, b_4bit),
        (8, 128, 1, a_1bit, b_1bit),
        (16, 128, 1, a_1bit, b_1bit),
        (16, 256, 1, a_1bit, b_1bit),
    ]
    for m, k, bits, a, b in shapes:
        tables.append(table(f"A m{m}n8k{k} b{bits}", 32, m * k // 32, a))
        tables.append(table(f"B m{m}n8k{k} b{bits}", 32, 8 * k // 32, b))
    write("mma_sync.csv", tables)


# 9.7.14.5.1: m8n8k4 of f16. The block is the quad pair.
def quad_pair():
    def quad(lane):
        return lane % 16 // 4

    def half(lane, low):
        return low if lane < 16 else low + 4

    def c_f32(lane, i):
        x = (lane & 0b1) + (i & 0b10)
        return (half(lane, x), (i & 0b100) + (lane & 0b10) + (i & 0b1), quad(lane))

    write(
        "quad_pair.csv",
        [
            table("A m8n8k4 row", 32, 4, lambda lane, i: (half(lane, lane % 4), i, quad(lane))),
            table("A m8n8k4 col", 32, 4, lambda lane, i: (half(lane, i % 4), lane % 4, quad(lane))),
            table("B m8n8k4 row", 32, 4, lambda lane, i: (half(lane, i), lane % 4, quad(lane))),
            table("B m8n8k4 col", 32, 4, lambda lane, i: (half(lane, lane % 4), i, quad(lane))),
            table("C m8n8k4 f16", 32, 8, lambda lane, i: (half(lane, lane % 4), i, quad(lane))),
            table("C m8n8k4 f32", 32, 8, c_f32),
        ],
    )


# 9.7.14.6: sparse A. The manual gives the first and last column of the chunk, or chunks, that a register's elements come from
# (`firstcol`, `lastcol`); elements are stored in order. The metadata is as an H100 uses it: one field changed at a time, the
# row and the chunk whose result changed.
def sparse():
    tables = []

    def first_column(bits, lane, i):
        """`firstcol`: so many columns a thread, and so many more from element `start` on."""
        wide, later, start = {32: (2, 8, 2), 16: (4, 16, 4), 8: (8, 32, 8), 4: (16, 64, 16)}[bits]
        return member(lane) * wide + (later if i >= start else 0)

    for k, bits in ((16, 16), (32, 16), (8, 32), (16, 32), (32, 8), (64, 8), (64, 4), (128, 4)):
        values = 16 * k // 2 // 32
        per_register = 32 // bits

        def compressed(lane, i):
            if bits == 32:
                row = group(lane) if i in (0, 2) else group(lane) + 8
            else:
                row = group(lane) if i // per_register % 2 == 0 else group(lane) + 8
            # The registers' elements cover 2·per_register columns, half of them stored.
            return (row, first_column(bits, lane, i) // 2 + (i % per_register))

        dense_b = {32: b_tf32_f64, 16: b_f16, 8: b_8bit, 4: b_4bit}[bits]
        tables.append(table(f"A m16n8k{k} b{bits}", 32, values, compressed))
        tables.append(table(f"B m16n8k{k} b{bits}", 32, 8 * k // 32, dense_b))

        selectors = {(16, 16): 4, (8, 32): 4, (64, 8): 1, (128, 4): 1}.get((k, bits), 2)
        for selector in range(selectors):
            rows = []
            for lane in range(32):
                g, t = group(lane), member(lane)
                if selectors == 4:
                    if t == selector:
                        rows.append((lane, [(g, f) if f < 4 else (g + 8, f - 4) for f in range(8)]))
                elif selectors == 1:
                    row, first = (g, g + 8, g, g + 8)[t], (0, 0, 8, 8)[t]
                    rows.append((lane, [(row, first + f) for f in range(8)]))
                elif t // 2 == selector and bits in (16, 32):
                    first = 4 * (t % 2)
                    rows.append(
                        (lane, [(g, first + f) if f < 4 else (g + 8, first + f - 4) for f in range(8)])
                    )
                elif t // 2 == selector:
                    rows.append((lane, [(g if t % 2 == 0 else g + 8, f) for f in range(8)]))
            tables.append((f"metadata m16n8k{k} b{bits} selector {selector}", rows))
    write("sparse.csv", tables)


# 9.7.14.5.15 and 9.7.14.5.16. Places are row/byte/matrix in memory.
def byte_matrices():
    tables = []
    for num in (1, 2):
        # Figure 105: four consecutive columns of the transposed matrix (rows in memory), two rows (bytes).
        tables.append(
            table(
                f"ldmatrix m16n16 x{num}",
                32,
                8 * num,
                lambda lane, i: (4 * member(lane) + i % 4, group(lane) + (8 if i // 4 % 2 else 0), i // 8),
            )
        )
        tables.append(table(f"rows m16 x{num}", 16 * num, 1, lambda lane, _: (lane % 16, 0, lane // 16)))
    for num in (1, 2, 4):
        # Figure 106: a row by four consecutive threads, four columns each.
        tables.append(
            table(
                f"ldmatrix m8n16 x{num}",
                32,
                4 * num,
                lambda lane, i: (group(lane), 4 * member(lane) + i % 4, i // 4),
            )
        )
        # Figure 108: element (row, column) of the 16x8 matrix lies at byte `row` of row `column` in memory.
        def store(lane, i):
            row, column = c_m16(lane, i % 4)
            return (column, row, i // 4)

        tables.append(table(f"stmatrix m16n8 x{num}", 32, 4 * num, store))
        tables.append(table(f"rows m8 x{num}", 8 * num, 1, lambda lane, _: (lane % 8, 0, lane // 8)))
    write("byte_matrices.csv", tables)


# 9.7.16.2.3.1 (figures 183 to 187): lane/column of thread and register; 9.7.16.10.5: lane/column/block of (m, n).
def tensor_memory():
    shapes = {
        "32x32b": (1, 32, lambda t, r: (t, r)),
        "16x64b": (1, 32, lambda t, r: (t // 4 + (8 if t % 2 else 0), t % 4 // 2 + 2 * r)),
        "16x128b": (2, 32, lambda t, r: (t // 4 + (8 if r % 2 else 0), t % 4 + 4 * (r // 2))),
        "16x256b": (
            4,
            32,
            lambda t, r: (t // 4 + (8 if r % 4 >= 2 else 0), t % 4 * 2 + r % 2 + 8 * (r // 4)),
        ),
    }
    tables = []
    for name, (registers, most, formula) in shapes.items():
        for repeat in (1, 2, most // 8):
            tables.append(table(f"{name} x{repeat}", 32, registers * repeat, formula))
    for repeat, split in ((1, 1), (2, 16), (8, 8)):
        tables.append(
            table(
                f"16x32bx2 x{repeat} split {split}",
                32,
                repeat,
                lambda t, r, s=split: (t % 16, r + (s if t >= 16 else 0)),
            )
        )

    def half(m):
        """The lane of one of 64 rows where each warp has 16 of its 32 lanes."""
        return m // 16 * 32 + m % 16

    # Rows and columns of the accumulator as thread and value.
    n = 64  # the least N with .ws
    tables += [
        table("A 256x16", 256, 16, lambda m, j: (m % 128, j, m // 128)),
        table("B 128x16", 128, 16, lambda m, j: (m % 64 + (64 if j >= 8 else 0), j % 8, m // 64)),
        table("C 128x16", 128, 16, lambda m, j: (half(m % 64), j, m // 64)),
        table("D 128x16", 128, 16, lambda m, j: (m, j, 0)),
        table(f"E 64x{n}", 64, n, lambda m, j: (m + (64 if j >= n // 2 else 0), j % (n // 2), 0)),
        table("F 64x16", 64, 16, lambda m, j: (half(m), j, 0)),
        table(f"G 32x{n}", 32, n, lambda m, j: (m + 32 * (j // (n // 4)), j % (n // 4), 0)),
    ]
    write("tensor_memory.csv", tables)


# 9.7.16.10.6: 16-byte units are permuted within a row of the pattern by the number of the row. One place per element: its
# bit address / 4 (nibbles), so that every width fits. Rows are mn, values k.
def shared_memory():
    units = {"none": 1, "32B": 2, "64B": 4, "128B": 8, "128B_32B": 8}

    def swizzled(mode, row, unit):
        if mode == "128B":
            return unit ^ row % 8
        if mode == "64B":
            return unit ^ row % 8 // 2
        if mode == "32B":
            return unit ^ row % 8 // 4
        if mode == "128B_32B":
            return (unit // 2 ^ row % 4) * 2 + unit % 2
        return unit

    tables = []
    for bits in (4, 8, 16, 32):
        per_unit = 128 // bits
        for mode in ("none", "32B", "64B", "128B"):
            w = units[mode]
            # K-major: 16 rows, two units of k or the width of the swizzle.
            columns = per_unit * max(w, 2)

            def k_major(mn, k):
                unit, within = divmod(k, per_unit)
                if mode == "none":
                    at = (mn // 8 * max(w, 2) + unit) * 128 + mn % 8 * 16
                else:
                    at = mn // 8 * 128 * w + mn % 8 * 16 * w + swizzled(mode, mn, unit) * 16
                return ((at * 8 + within * bits) // 4,)

            tables.append(table(f"K {mode} b{bits} 16x{columns}", 16, columns, k_major))
        if bits == 4:
            continue
        for mode in ("128B_32B",) if bits == 32 else ("none", "32B", "64B", "128B"):
            w = units[mode]
            rows = 2 * per_unit * w
            depth = 4 if mode == "128B_32B" else 8

            def mn_major(mn, k):
                unit, within = divmod(mn, per_unit)
                if mode == "none":
                    at = (k // 8 * (rows // per_unit) + unit) * 128 + k % 8 * 16
                else:
                    pattern = depth * 16 * w
                    at = (k // depth * 2 + unit // w) * pattern
                    at += k % depth * 16 * w + swizzled(mode, k % depth, unit % w) * 16
                return ((at * 8 + within * bits) // 4,)

            tables.append(table(f"MN {mode} b{bits} {rows}x16", rows, 16, mn_major))
    write("shared_memory.csv", tables)


def amd(calculator):
    """Asks the calculator for every operand of every MFMA of CDNA2 and CDNA3, and every WMMA of RDNA3."""

    def ask(*words):
        done = subprocess.run([sys.executable, calculator, *words], capture_output=True, text=True, check=True)
        return done.stdout

    for path, chips, prefix, waves in (
        ("mfma.csv", ("cdna2", "cdna3"), "v_mfma", ("64",)),
        ("wmma.csv", ("rdna3",), "v_wmma", ("32", "64")),
    ):
        tables, seen = [], set()
        for chip in chips:
            for name in re.findall(rf"{prefix}\w+", ask("-a", chip, "-L")):
                for wave in waves:
                    if (name, wave) in seen:
                        continue
                    seen.add((name, wave))
                    for operand in "ABD":
                        words = ["-a", chip, "-i", name, "-" + operand, "--matrix-layout", "--csv"]
                        if prefix == "v_wmma":
                            words += ["-w", wave]
                        rows = []
                        for line in ask(*words).splitlines():
                            if not re.match(r"\d", line):
                                continue
                            lane, *cells = line.split(",")
                            places = []
                            for cell in cells:
                                row, column, block = re.match(
                                    r"\w\[(\d+)\]\[(\d+)\](?:\.B(\d+))?", cell
                                ).groups()
                                pair = (column, row) if operand == "B" else (row, column)
                                places.append((*pair, block or "0"))
                            rows.append((lane, places))
                        label = name if prefix == "v_mfma" else f"{name} wave{wave}"
                        tables.append((f"{operand} {label}", rows))
        write(path, tables)


mma_sync()
quad_pair()
sparse()
byte_matrices()
tensor_memory()
shared_memory()
if len(sys.argv) == 3 and sys.argv[1] == "--amd":
    amd(sys.argv[2])
