"""The emulator: arguments, results in place, findings as objects, refusals."""

import array
import unittest

import tilewright as tw

try:
    import numpy
except ImportError:
    numpy = None

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

# y[i] = scale * x[i] for i below n, a thread an element.
SCALE = (
    HEAD
    + """
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 factor, .param .u32 n) {
    .reg .pred %p<1>; .reg .b32 %r<4>; .reg .b64 %d<5>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y]; ld.param.f32 %f0, [factor]; ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, 64, %r1;
    setp.ge.u32 %p0, %r3, %r0; @%p0 ret;
    mul.wide.u32 %d2, %r3, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f2, %f1, %f0;
    st.global.f32 [%d4], %f2;
    ret;
}"""
)


class Run(unittest.TestCase):
    def test_writes_in_place(self):
        x, y = array.array("f", range(100)), array.array("f", [0] * 100)
        report = tw.run(SCALE, grid=2, block=64, args=[x, y, 0.5, 100])
        self.assertTrue(report)
        self.assertEqual(list(y), [i / 2 for i in range(100)])
        self.assertEqual(report.blocks, 2)
        self.assertGreater(report.counters[0].warp_instructions, 0)
        again = array.array("f", [0] * 100)
        tw.run(SCALE, "scale", grid=(2, 1, 1), block=(64,), args={"n": 50, "factor": 2, "x": y, "y": again}).raise_findings()
        self.assertEqual((list(again)[49], list(again)[50]), (49.0, 0.0))

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_takes_arrays_of_numpy(self):
        x = numpy.arange(100, dtype=numpy.float32).reshape(10, 10)
        y = numpy.zeros_like(x)
        self.assertTrue(tw.run(SCALE, grid=2, block=64, args=[x, y, numpy.float32(2), numpy.uint32(100)]))
        self.assertTrue((y == 2 * x).all())
        # One array for both.
        self.assertTrue(tw.run(SCALE, grid=2, block=64, args=[y, y, 2, 100]))
        self.assertTrue((y == 4 * x).all())
        with self.assertRaisesRegex(ValueError, "contiguous"):
            tw.run(SCALE, grid=2, block=64, args=[x.T, y, 2, 100])
        halves = numpy.ones(200, dtype=numpy.float16)
        self.assertTrue(tw.run(SCALE, grid=2, block=64, args=[halves, y, 1, 100]))

    def test_findings_are_objects(self):
        x, y = array.array("f", range(99)), array.array("f", [0] * 100)
        report = tw.run(SCALE, grid=2, block=64, args=[x, y, 1.0, 100])
        self.assertFalse(report.passed)
        (finding,) = report.findings
        self.assertEqual((finding.kind, finding.buffer, finding.kernel), ("out_of_bounds", "x", "scale"))
        self.assertEqual(SCALE.splitlines()[finding.line - 1].strip(), "ld.global.f32 %f1, [%d3];")
        self.assertIn("lane 3", finding.message)
        self.assertIn("buffer `x`", str(finding))
        with self.assertRaises(tw.KernelError):
            report.raise_findings()

    def test_refusals(self):
        x = array.array("f", [0] * 4)
        for refused, expected in [
            (lambda: tw.run("nonsense"), tw.KernelError),
            (lambda: tw.run(SCALE, "other", args=[]), tw.KernelError),
            (lambda: tw.run(SCALE, args=[x, x, 1.0]), tw.KernelError),
            (lambda: tw.run(SCALE, args=[x, x, 1.0, -1]), TypeError),
            (lambda: tw.run(SCALE, args=[x, x, 1.0, 2.5]), TypeError),
            (lambda: tw.run(SCALE, args=[x, x, "one", 4]), TypeError),
            (lambda: tw.run(SCALE, args={"x": x}), ValueError),
            (lambda: tw.run(SCALE, block=2048, args=[x, x, 1.0, 4]), tw.KernelError),
            (lambda: tw.run(SCALE, device="abacus", args=[x, x, 1.0, 4]), tw.KernelError),
            (lambda: tw.run(SCALE, also=["everything"], args=[x, x, 1.0, 4]), tw.KernelError),
        ]:
            with self.assertRaises(expected):
                refused()
        with self.assertRaisesRegex(ValueError, "has 2 kernels"):
            tw.run(HEAD + ".visible .entry a() { ret; }\n.visible .entry b() { ret; }")

    def test_a_buffer_may_be_read_only(self):
        x = memoryview(array.array("f", range(64))).toreadonly()
        y = array.array("f", [0] * 64)
        self.assertTrue(tw.run(SCALE, grid=1, block=64, args=[x, y, 3, 64]))
        self.assertEqual(y[63], 189)


if __name__ == "__main__":
    unittest.main()
