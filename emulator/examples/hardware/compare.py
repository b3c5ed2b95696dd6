"""Runs every launch of manifest.json on GPU 0 and compares the results bit by bit with the emulator's.

    python3 compare.py [--unoptimized] [--only PREFIX] [FOLDER FOR THE GPU'S RESULTS]

Needs Python 3.8 and the CUDA driver (libcuda). Prints a summary; with a folder it also writes report.json, and differences.z: for each launch that differs
the places and the GPU's words (zlib over JSON). `--unoptimized` has the driver assemble at level 0, which leaves a program's instructions as they are
written; `--only scalar` takes the modules whose names begin so. Exits with 1 if anything differs.
"""
import argparse
import ctypes
import json
import multiprocessing
import os
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))


class Driver:
    """The few calls of the CUDA driver that a launch needs."""

    def __init__(self, level):
        self.level = level
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        major, minor, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.name = "%s, sm_%d%d, driver API %d" % (name.value.decode(), major.value, minor.value, version.value)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        code = getattr(self.cuda, name)(*args)
        if code != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError("%s: %s" % (name, (text.value or b"?").decode()))

    def load(self, text):
        module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 3)(5, 6, 7)  # the error log, its size, the level of optimisation
        values = (ctypes.c_void_p * 3)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(4096), ctypes.c_void_p(self.level))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(text + b"\0"), 3, options, values)
        except RuntimeError as error:
            raise RuntimeError("%s: %s" % (error, log.value.decode(errors="replace").strip()))
        return module

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def tensor_map(self, case, address):
        """The 128 bytes of a tiled tensor map of the array at `address`."""
        m, rank = case["map"], len(case["map"]["sizes"])
        place = ctypes.create_string_buffer(128 + 64)
        aligned = (ctypes.addressof(place) + 63) // 64 * 64
        sizes = (ctypes.c_uint64 * rank)(*m["sizes"])
        strides = (ctypes.c_uint64 * rank)(*m["strides"])
        box = (ctypes.c_uint32 * rank)(*m["box"])
        steps = (ctypes.c_uint32 * rank)(*m["steps"])
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(aligned), m["element"], rank, address, sizes, strides, box, steps, m["interleave"], m["swizzle"], 0, m["nan"])
        return ctypes.create_string_buffer(ctypes.string_at(aligned, 128), 128)

    def run(self, module, case, data):
        """The output of one launch."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, case["kernel"].encode())
        size = case["output"][1]
        places = []
        for count in (len(data), size):
            place = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(count))
            places.append(place)
        self.call("cuMemcpyHtoD_v2", places[0], data, ctypes.c_size_t(len(data)))
        self.call("cuMemsetD8_v2", places[1], ctypes.c_ubyte(0), ctypes.c_size_t(size))
        arguments = [ctypes.byref(p) for p in places]
        if case["map"]:
            arguments.append(ctypes.byref(self.tensor_map(case, places[0])))
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(a, ctypes.c_void_p) for a in arguments])
        self.call("cuLaunchKernel", function, case["grid"], 1, 1, case["block"], 1, 1, 0, None, pointers, None)
        self.call("cuCtxSynchronize")
        out = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", out, places[1], ctypes.c_size_t(size))
        for place in places:
            self.call("cuMemFree_v2", place)
        return out.raw


# Element type of D: the array code of memoryview, bits, bits of the fraction.
ELEMENTS = {"f16": ("H", 16, 10), "f32": ("I", 32, 23), "bf16": ("H", 16, 7), "f64": ("Q", 64, 52), "s32": ("I", 32, None), "b32": ("I", 32, None)}


def is_nan(x, bits, fraction):
    return (x & ((1 << (bits - 1)) - 1)) > (((1 << (bits - 1 - fraction)) - 1) << fraction)


def ordered(x, bits):
    """An integer with the order of the floating-point numbers."""
    half = 1 << (bits - 1)
    return -(x - half) if x & half else x


def compare_matrices(case, ours, gpu):
    code, bits, fraction = ELEMENTS[case["element"]]
    a, b = memoryview(ours).cast(code), memoryview(gpu).cast(code)
    each = len(a) // len(case["families"])
    out = []
    for i, family in enumerate(case["families"]):
        differ, nans, worst, example = 0, 0, 0, None
        for k in range(i * each, (i + 1) * each):
            x, y = a[k], b[k]
            if x == y:
                continue
            if fraction and is_nan(x, bits, fraction) and is_nan(y, bits, fraction):
                nans += 1
                continue
            differ += 1
            if example is None:
                example = {"index": k, "emulator": hex(x), "gpu": hex(y)}
            if fraction and not is_nan(x, bits, fraction) and not is_nan(y, bits, fraction):
                worst = max(worst, abs(ordered(x, bits) - ordered(y, bits)))
        out.append({"family": family, "results": each, "differ": differ, "other_nan": nans, "most_ulps": worst, "example": example})
    return out


def compare_program(case, ours, gpu):
    """The first instruction that differs, of each thread."""
    a, b = memoryview(ours).cast("I"), memoryview(gpu).cast("I")
    found = {}
    done = set()
    for row, opcode in enumerate(case["rows"]):
        for lane in range(32):
            k = 32 * row + lane
            if a[k] != b[k] and lane not in done:
                done.add(lane)
                entry = found.setdefault(opcode, {"threads": 0, "example": {"program": case["name"], "row": row, "lane": lane, "emulator": hex(a[k]), "gpu": hex(b[k])}})
                entry["threads"] += 1
    return found


def run_modules(todo, level, send):
    """Runs the launches of modules until one faults; says with "next" that it begins a module."""
    driver = Driver(level)
    send("device", driver.name)
    read = lambda name: open(os.path.join(HERE, name), "rb").read()
    for name, members in todo:
        send("next")
        stem = name[: -len(".ptx")]
        inputs, outputs = read(stem + ".in"), read(stem + ".out")
        try:
            module = driver.load(read(name))
        except RuntimeError as error:
            send("error", name, str(error))
            continue
        for case in members:
            at, size = case["input"]
            try:
                gpu = driver.run(module, case, inputs[at : at + size])
            except RuntimeError as error:
                send("error", case["name"], str(error))
                if "cuTensorMapEncodeTiled" in str(error):
                    continue
                return
            at, size = case["output"]
            send("result", case, outputs[at : at + size], gpu)
        driver.unload(module)


def in_another_process(work, *arguments):
    """What `work` sends, until its process ends."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    # A fork, before anything of CUDA is there.
    process = multiprocessing.get_context("fork").Process(target=lambda: work(*arguments, lambda *message: sender.send(message)))
    process.start()
    sender.close()
    try:
        while True:
            if not receiver.poll(20):
                process.kill()
                yield "error", "a launch", "nothing for 20 s: it hangs"
            yield receiver.recv()
    except EOFError:
        process.join()
    if process.exitcode not in (0, -9):
        raise SystemExit("the process that runs the launches ended with %s" % process.exitcode)


def main():
    parser = argparse.ArgumentParser(description="Compares the GPU's results bit by bit with the emulator's.")
    parser.add_argument("--unoptimized", action="store_true", help="assemble at level 0")
    parser.add_argument("--only", default="", metavar="PREFIX", help="modules whose names begin so")
    parser.add_argument("target", nargs="?", metavar="FOLDER", help="where the GPU's results go")
    options = parser.parse_args()
    target, level = options.target, 0 if options.unoptimized else 4
    if target:
        os.makedirs(target, exist_ok=True)
    with open(os.path.join(HERE, "manifest.json")) as f:
        cases = json.load(f)
    start = time.time()
    by_module = {}
    for case in cases:
        if case["module"].startswith(options.only):
            by_module.setdefault(case["module"], []).append(case)
    matrices, opcodes, errors, programs, wrong = {}, {}, {}, 0, 0
    differences, device = {}, None
    todo = list(by_module.items())
    while todo:
        # A process for as many modules as can be: after a fault its context is lost.
        for message, *data in in_another_process(run_modules, todo, level):
            if message == "device":
                if device is None:
                    print(data[0], flush=True)
                device = data[0]
            elif message == "next":
                todo = todo[1:]
            elif message == "error":
                name, error = data
                errors[name] = error
                print("%s: %s" % (name, error), flush=True)
            else:
                case, ours, gpu = data
                a, b = memoryview(ours).cast("I"), memoryview(gpu).cast("I")
                places = [k for k in range(len(a)) if a[k] != b[k]][:40000]
                if places:
                    differences[case["name"]] = [[k, b[k]] for k in places]
                if case["families"]:
                    matrices[case["name"]] = compare_matrices(case, ours, gpu)
                    continue
                programs += 1
                different = compare_program(case, ours, gpu)
                wrong += bool(different)
                for opcode, entry in different.items():
                    opcodes.setdefault(opcode, {"threads": 0, "examples": []})
                    opcodes[opcode]["threads"] += entry["threads"]
                    if len(opcodes[opcode]["examples"]) < 3:
                        opcodes[opcode]["examples"].append(entry["example"])
    for name, families in matrices.items():
        parts = ["%s %d/%d (%d ulp)" % (f["family"], f["differ"], f["results"], f["most_ulps"]) for f in families]
        print("%-44s differ: %s" % (name, ", ".join(parts)))
    print("scalar programs: %d, different: %d" % (programs, wrong))
    for opcode, entry in sorted(opcodes.items(), key=lambda x: -x[1]["threads"]):
        print("  %-36s %5d threads, such as %s" % (opcode, entry["threads"], json.dumps(entry["examples"][0])))
    print("%.1f s" % (time.time() - start))
    report = {"device": device, "matrices": matrices, "programs": programs, "different_programs": wrong, "opcodes": opcodes, "errors": errors}
    if target:
        with open(os.path.join(target, "report.json"), "w") as f:
            json.dump(report, f)
        with open(os.path.join(target, "differences.z"), "wb") as f:
            f.write(zlib.compress(json.dumps(differences).encode(), 9))
    same = not wrong and not errors and not any(f["differ"] for m in matrices.values() for f in m)
    sys.exit(0 if same else 1)


main()
