"""Compiles the kernels of this folder: python3 compile.py LIBNVRTC INCLUDES [NAME ...].

LIBNVRTC is the path of libnvrtc.so; INCLUDES the folder with cuda_fp16.h and, below it, cccl/.
"""
import ctypes
import glob
import os
import re
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def compile_source(nvrtc, includes, source, name, arch, debug):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    options = [f"--gpu-architecture=compute_{arch}", f"-I{includes}", f"-I{includes}/cccl",
               "-default-device", "--std=c++17", "--device-int128"] + ["-G"] * debug
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size, get_size, get = ctypes.c_size_t(), nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX
    if status:
        get_size, get = nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog
    get_size(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    if status:
        sys.exit(text.value.decode())
    return text.value.decode()


def without_debug_data(ptx):
    ptx = re.sub(r"\t?\.section\s+\.debug\w*\s*\{.*?\n\t?\}\n", "", ptx, flags=re.S)
    ptx = ptx[ptx.index(".version"):]
    lines = [line.rstrip() for line in ptx.split("\n")]
    lines = [l for l in lines if l and not re.match(r"\s*//\s*\.(globl|weak)|\s*\.loc\s", l)]
    text = "\n".join(lines)
    used_once = lambda l: re.match(r"\$L__\w+:$", l) and len(re.findall(re.escape(l[:-1]) + r"\b", text)) == 1
    return "\n".join(l for l in lines if not used_once(l)) + "\n"


def main():
    nvrtc, includes, only = ctypes.CDLL(sys.argv[1]), sys.argv[2], sys.argv[3:]
    for path in sorted(glob.glob(f"{FOLDER}/*.cu")):
        name = os.path.basename(path)[:-3]
        if only and name not in only:
            continue
        source, different = open(path).read(), {}
        for debug in (False, True):
            for arch in (75, 80, 90, 120):
                ptx = without_debug_data(compile_source(nvrtc, includes, source, name + ".cu", arch, debug))
                key = re.sub(r"\.target sm_\w+", "", ptx)
                different.setdefault(key, []).append((arch, debug, ptx))
        for same in different.values():
            arch, debug, ptx = same[0]
            who = ", ".join(f"sm_{a}{' -G' if d else ''}" for a, d, _ in same)
            with open(f"{FOLDER}/{name}.sm_{arch}{'.debug' if debug else ''}.ptx", "w") as out:
                out.write(f"// {name}.cu for {who}\n{ptx}")


main()
