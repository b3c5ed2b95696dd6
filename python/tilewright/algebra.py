"""The functions of the calculator by their names, which are CuTe's. Operands are layouts, ints, tuples, strings in the notation, and None for `_`.

>>> zipped_divide("(8,8):(8,1)", (4, 4))
Layout('((4,4),(2,2)):((8,1),(32,4))')
>>> right_inverse("(4,8):(8,1)")
Layout('(8,4):(4,1)')
>>> atom_c("mma.m16n8k16.f16")
Layout('((4,8),(2,2)):((32,1),(16,8))')

Some have the names of Python's own, such as `min`, `sum`, `zip` and `filter`: import the module, and not everything from it.
"""

from typing import Any, Callable

from tilewright import _native


def _function(name: str, usage: str, about: str) -> "Callable[..., Any]":
    """A function of the calculator: `name(*operands)`."""

    def function(*operands: Any) -> Any:
        return _native.call(name, *operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{usage}`: {about}."
    return function


for _name, _usage, _about in _native.functions():
    globals()[_name] = _function(_name, _usage, _about)
