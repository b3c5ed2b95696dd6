"""The kernels that come with Tilewright: their list, their contracts, and runs of them on the emulator."""

import array
import json
import math
import subprocess
import sys
import unittest

import tilewright as tw


def floats(n, seed=1):
    """Numbers in [-1, 1) from a linear congruential generator, as f32."""
    values = array.array("f")
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % (1 << 31)
        values.append(seed / (1 << 30) - 1)
    return values


class Kernels(unittest.TestCase):
    def test_are_listed_with_their_options(self):
        kernels = tw.kernels()
        self.assertLessEqual({"attention", "softmax", "rms_norm", "transpose", "grouped", "block_scaled"}, set(kernels))
        self.assertEqual(kernels["softmax"].computes, "Softmax of each row")
        options = {option.name: option for option in kernels["attention"].options}
        self.assertEqual((options["dtype"].default, options["causal"].is_flag), ("f16", True))
        self.assertTrue({"emit", "on", "json", "seed", "help"}.isdisjoint(options))

    def test_contract_is_that_of_the_command(self):
        kernel = tw.kernel("softmax", dtype="bf16", rows=64, cols=700)
        self.assertIn(f".entry {kernel.launches[0].kernel}", kernel.ptx.replace("(", " "))
        words = [sys.executable, "-m", "tilewright", "kernel", "softmax", "--dtype=bf16", "--rows=64", "--cols=700", "--on=none", "--json"]
        printed = subprocess.run(words, capture_output=True, check=True).stdout
        self.assertEqual(json.loads(printed), kernel.report)
        self.assertEqual([b["name"] for b in kernel.buffers], ["x", "y"])
        self.assertEqual((kernel.arch, kernel.name), ("sm_80", "softmax"))

    def test_softmax_runs(self):
        rows, cols = 5, 70
        x, y = floats(rows * cols), array.array("f", [math.nan] * (rows * cols))
        tw.kernel("softmax", rows=rows, cols=cols).run(x=x, y=y).raise_findings()
        for row in range(rows):
            weights = [math.exp(v) for v in x[row * cols : (row + 1) * cols]]
            for value, weight in zip(y[row * cols :], weights):
                self.assertAlmostEqual(value, weight / sum(weights), delta=1e-6)

    def test_gemm_runs_in_several_launches(self):
        m, n, k = 70, 50, 900
        kernel = tw.gemm(dtype="f32", m=m, n=n, k=k, split=4, arch="sm_80")
        self.assertEqual(len(kernel.launches), 2)
        a, b, c = floats(m * k), floats(k * n, 7), array.array("f", [math.nan] * (m * n))
        kernel.run(a=a, b=b, c=c).raise_findings()
        for i, j in [(0, 0), (69, 49), (33, 17)]:
            exact = sum(a[i * k + p] * b[p * n + j] for p in range(k))
            self.assertAlmostEqual(c[i * n + j], exact, delta=1e-3)

    def test_tensor_maps_are_encoded(self):
        kernel = tw.gemm(dtype="f16", m=128, n=128, k=64, trans="nt", arch="sm_90", plan="wgmma-f16-128x128x64")
        self.assertTrue(any(p["type"] == "tensor_map" for launch in kernel.launches for p in launch.params))
        one = array.array("H", [0x3C00] * (128 * 64))  # 1.0 in f16
        c = array.array("H", [0] * (128 * 128))
        kernel.run(A=one, B=one, C=c).raise_findings()
        self.assertEqual(set(c), {0x5400})  # 64.0

    def test_refusals(self):
        with self.assertRaises(tw.KernelError) as caught:
            tw.kernel("softmx")
        self.assertEqual(caught.exception.code, "unknown_kernel")
        self.assertIn("softmax", str(caught.exception))
        with self.assertRaisesRegex(tw.KernelError, "no option `columns`; it has arch, cols"):
            tw.kernel("softmax", columns=3)
        with self.assertRaisesRegex(tw.KernelError, "give a whole number"):
            tw.kernel("softmax", rows="many")
        with self.assertRaises(tw.KernelError):
            tw.gemm(dtype="f16", m=-1)
        kernel = tw.kernel("softmax", rows=4, cols=4)
        with self.assertRaisesRegex(ValueError, "missing"):
            kernel.run(x=floats(16))
        with self.assertRaisesRegex(ValueError, "bytes"):
            kernel.run(x=floats(15), y=floats(16))

    def test_command_answers(self):
        words = [sys.executable, "-m", "tilewright", "eval", "cosize((4,8):(16,1))"]
        self.assertEqual(subprocess.run(words, capture_output=True, check=True).stdout.strip(), b"56")
        self.assertEqual(subprocess.run([*words[:3], "--nothing"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
