"""The snippets of the page about Python and of the docstrings."""

import doctest
import pathlib
import unittest

import tilewright
import tilewright._kernels
import tilewright._run
import tilewright.algebra

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def load_tests(loader, tests, pattern):
    for module in (tilewright, tilewright._kernels, tilewright._run, tilewright.algebra):
        tests.addTests(doctest.DocTestSuite(module))
    native = doctest.DocTestFinder().find(tilewright.Layout, "Layout", globs={"Layout": tilewright.Layout})
    for test in native:
        if test.examples:
            tests.addTest(doctest.DocTestCase(test))
    return tests


class Page(unittest.TestCase):
    def test_snippets(self):
        parser, code, number = doctest.DocTestParser(), [], 0
        inside = None
        for line in PAGE.read_text().splitlines():
            if line.startswith("```"):
                inside = line[3:] if inside is None else None
                continue
            code.append(line if inside == "pycon" else "")
            number += inside == "pycon" and line.startswith(">>> ")
        self.assertGreater(number, 10)
        test = parser.get_doctest("\n".join(code) + "\n", {}, "docs/python.md", str(PAGE), 0)
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        self.assertEqual(failed, 0)


if __name__ == "__main__":
    unittest.main()
