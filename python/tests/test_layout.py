"""Layouts: the class, its operations, errors, pictures, and the questions about them."""

import pickle
import unittest

import tilewright as tw
from tilewright import algebra


class Layouts(unittest.TestCase):
    def test_is_read_and_written(self):
        for text in ["(6,2):(8,2)", "Sw<3,3,3> o (64,64):(64,1)", "(8,64):(ld,1)", "8:1", "(4,(2,2)):(2,(1,8))", "Sw<3,3,3>"]:
            layout = tw.layout(text)
            self.assertEqual(str(layout), text)
            self.assertEqual(eval(repr(layout), {"Layout": tw.Layout}), layout)
            self.assertEqual(pickle.loads(pickle.dumps(layout)), layout)
            self.assertEqual(hash(layout), hash(tw.layout(text)))

    def test_is_made_of_shape_and_stride(self):
        self.assertEqual(tw.Layout((4, (2, 2)), (2, (1, 8))), tw.layout("(4,(2,2)):(2,(1,8))"))
        self.assertEqual(tw.Layout((4, 8)), tw.layout("(4,8):(1,4)"))
        self.assertEqual(tw.Layout(8), tw.layout("8:1"))
        self.assertEqual(tw.Layout("(4,8)"), tw.layout("(4,8):(1,4)"))
        layout = tw.layout("Sw<3,3,3> o 16 o (8,64):(64,1)")
        self.assertEqual((layout.shape, layout.stride, layout.offset, layout.swizzle), ((8, 64), (64, 1), 16, (3, 3, 3)))
        self.assertEqual(tw.layout("(8,64):(2*ld,1)").stride, ("2*ld", 1))
        self.assertNotEqual(tw.layout("(2,2):(1,2)"), tw.layout("4:1"))
        self.assertTrue(tw.layout("(2,2):(1,2)").equals("4:1"))

    def test_maps_coordinates(self):
        layout = tw.layout("Sw<3,3,3> o (64,64):(64,1)")
        for row in range(0, 64, 7):
            for column in range(0, 64, 5):
                offset = row * 64 + (column ^ (row % 8 * 8))
                self.assertEqual(layout(row, column), offset)
                self.assertEqual(layout((row, column)), offset)
                self.assertEqual(layout(row + 64 * column), offset)
        self.assertEqual(layout.coordinate(130), (2, 2))
        self.assertEqual(tw.layout("(4,8):(8,1)")(1, None), tw.layout("8 o (8):(1)"))
        self.assertEqual(tw.layout("(4,8):(8,1)")(slice(None), 3), tw.layout("3 o (4):(8)"))
        self.assertEqual(tw.layout("(8,64):(ld,1)")(2, 3), "2*ld+3")

    def test_has_modes(self):
        layout = tw.layout("(4,(2,2)):(2,(1,8))")
        self.assertEqual((len(layout), layout.size(), layout.cosize(), layout.depth()), (2, 16, 16, 2))
        self.assertEqual(list(layout), [tw.layout("4:2"), tw.layout("(2,2):(1,8)")])
        self.assertEqual(layout[-1], tw.layout("(2,2):(1,8)"))
        with self.assertRaises(IndexError):
            layout[2]

    def test_composes(self):
        outer, inner = tw.layout("(6,2):(8,2)"), tw.layout("(4,3):(3,1)")
        both = outer @ inner
        self.assertEqual(both, outer.compose(inner))
        self.assertEqual(both, tw.composition(outer, inner))
        self.assertTrue(all(both(i) == outer(inner(i)) for i in range(inner.size())))
        self.assertEqual(tw.swizzle(3, 3, 3) @ tw.layout("(64,64):(64,1)"), tw.layout("Sw<3,3,3> o (64,64):(64,1)"))
        self.assertEqual(tw.layout("(8,8):(8,1)").compose((4, None)), tw.layout("(4,8):(8,1)"))

    def test_operations_hold_their_laws(self):
        for text in ["(4,8):(8,1)", "(3,(2,4)):(8,(4,1))", "(8,2,4):(1,64,8)"]:
            layout = tw.layout(text)
            n = layout.size()
            right, left = layout.right_inverse(), layout.left_inverse()
            self.assertTrue(all(layout(right(i)) == i for i in range(right.size())))
            self.assertTrue(all(left(layout(i)) == i for i in range(n)))
            self.assertTrue(layout.coalesce().equals(layout))
            self.assertTrue(layout.flatten().equals(layout))
        rest = tw.complement("4:2", 24)
        self.assertEqual(sorted(a + b for a in map(tw.layout("4:2"), range(4)) for b in map(rest, range(rest.size()))), list(range(24)))
        tiles = tw.layout("(8,8):(8,1)").zipped_divide((4, 4))
        self.assertEqual(tiles, tw.layout("((4,4),(2,2)):((8,1),(32,4))"))
        self.assertEqual(tw.layout("(8,8):(8,1)").local_tile((4, 4), (1, 0)), tw.layout("32 o (4,4):(8,1)"))
        self.assertEqual(tw.layout("(2,2):(2,1)").blocked_product("(3,4):(1,3)").size(), 48)

    def test_refusals_are_exceptions_with_their_place(self):
        with self.assertRaises(tw.LayoutError) as caught:
            tw.layout("(4,é):(1,4)")
        error = caught.exception
        self.assertIsInstance(error, ValueError)
        self.assertEqual(error.code, "syntax")
        self.assertEqual(error.text[slice(*error.span)], "é")
        self.assertIn("^", str(error))
        with self.assertRaises(tw.LayoutError) as caught:
            tw.layout("(4,6):(1,5)").compose("5:1")
        self.assertEqual(caught.exception.code, "not_composable")
        with self.assertRaises(tw.LayoutError):
            tw.layout("(4,8):(8,1)")(4, 0, 0)
        with self.assertRaises(tw.LayoutError):
            tw.layout("1 == 1")
        with self.assertRaises(TypeError):
            tw.layout("8:1").compose(1.5)
        with self.assertRaises(TypeError):
            tw.layout("8:1").compose(True)

    def test_pictures(self):
        layout = tw.layout("Sw<2,0,3> o (8,8):(8,1)")
        self.assertTrue(layout._repr_svg_().startswith("<svg"))
        self.assertTrue(layout._repr_html_().startswith("<iframe"))
        self.assertIsNone(tw.algebra.matrix("(4,4):(4,1)")._repr_svg_())
        picture = tw.layout("Sw<3,3,3> o (64,64):(64,1)").picture(access="ldmatrix.x4 @ (16,2):(64,8)")
        self.assertEqual(picture.to_dict()["panels"][1]["access"]["wavefronts"], 4)
        self.assertTrue(picture.html.startswith("<!") and "phase" in str(picture))
        self.assertIn("T0", tw.instruction("mma.m16n8k16.f16", operand="C").svg)
        self.assertIn("ldmatrix.x4", tw.instructions())

    def test_other_notations(self):
        tile = tw.layout("Sw<3,3,3> o (64,64):(64,1)")
        self.assertEqual(tile.written("cute"), "Sw<3,3,3> o _0 o (_64,_64):(_64,_1)")
        with self.assertRaises(tw.LayoutError):
            tile.written("cutlass")


class Algebra(unittest.TestCase):
    def test_has_every_function_of_the_calculator(self):
        names = [name for name, _, _ in tw.algebra._native.functions()]
        self.assertGreater(len(names), 100)
        for name in names:
            self.assertTrue(callable(getattr(algebra, name)), name)

    def test_stubs_are_of_the_same_functions(self):
        import pathlib

        stubs = pathlib.Path(algebra.__file__).with_suffix(".pyi").read_text().splitlines()
        stubbed = [line.split("(")[0][4:] for line in stubs if line.startswith("def ")]
        self.assertEqual(stubbed, [name for name, _, _ in tw.algebra._native.functions()])

    def test_names_of_pycute(self):
        layout = tw.make_layout((4, 8), (8, 1))
        self.assertEqual(tw.make_layout("4:8", "8:1"), layout)
        self.assertEqual((tw.size(layout), tw.cosize(layout), tw.rank(layout)), (32, 32, 2))
        self.assertEqual(tw.crd2idx((1, 2), (4, 8), (8, 1)), 10)
        self.assertEqual(tw.idx2crd(9, (4, 8)), (1, 2))
        self.assertEqual(tw.logical_divide(layout, (2, 4)), layout.logical_divide((2, 4)))
        self.assertEqual(tw.coalesce("(2,(1,6)):(1,(6,2))"), tw.layout("12:1"))
        self.assertEqual(algebra.gcd(12, 18), 6)
        self.assertEqual(algebra.shape("(4,8):(8,1)"), (4, 8))
        self.assertTrue(algebra.is_bijective(layout))


class Questions(unittest.TestCase):
    def test_evaluate(self):
        self.assertEqual(tw.evaluate("cosize((4,8):(16,1))"), 56)
        self.assertEqual(tw.evaluate("(1,(2,3))"), (1, (2, 3)))
        self.assertIs(tw.evaluate("4:2 == (2,2):(2,4)"), True)
        self.assertEqual(tw.evaluate("let a = (4,8):(8,1); a(1,_)"), tw.layout("8 o (8):(1)"))
        self.assertEqual(tw.evaluate("(4:1, 8:2)"), (tw.layout("4:1"), tw.layout("8:2")))
        self.assertEqual(tw.evaluate("row_shards((8,6),2)")["kind"], "distribution")

    def test_derive(self):
        answer = tw.derive((64, 64), "bf16", ["cp.async.16 @ (8,4):(8,64)", "ldmatrix.x4 @ (16,2):(64,8)"])
        self.assertEqual((answer["status"], answer["layout"]), ("optimal", "Sw<3,3,3> o (64,64):(64,1)"))
        self.assertEqual(tw.layout(answer["layout"]).size(), 4096)
        with self.assertRaises(tw.LayoutError) as caught:
            tw.derive("64x64", "bf16", ["ldmatrix.x4"])
        self.assertEqual(caught.exception.code, "access")
        with self.assertRaises(tw.LayoutError) as caught:
            tw.derive("64x64", "bf16", ["ldmatrix.x4 @ (16,2):(64,é)"])
        error = caught.exception
        self.assertEqual((error.text, error.text[slice(*error.span)]), ("ldmatrix.x4 @ (16,2):(64,é)", "é"))

    def test_banks(self):
        (counted,) = tw.banks("ld.32 @ 32:32", tile=(32, 32))
        self.assertEqual((counted["wavefronts"], counted["ideal"]), (32, 1))
        (counted,) = tw.banks("ldmatrix.x4 @ (16,2):(64,8)", layout="Sw<3,3,3> o (64,64):(64,1)", elem="f16")
        self.assertEqual(counted["wavefronts"], 4)

    def test_index(self):
        code = tw.index(tw.layout("Sw<3,4,3> o (8,64):(64,1)"), target="rust")["code"]
        self.assertIn("const fn offset", code)
        code = tw.index("(8,64):(ld,1)", target="opencl", coords="row,col", ranges=["ld=64..128"])
        self.assertEqual([p["name"] for p in code["parameters"]], ["row", "col", "ld"])
        with self.assertRaises(tw.LayoutError):
            tw.index("8:1", target="fortran")


if __name__ == "__main__":
    unittest.main()
