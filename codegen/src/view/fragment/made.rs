//! Fragments of values that the author computed.

use layout_core::Layout;

use super::{Fragment, registers_of};
use crate::index::Expr;
use crate::ir::Kernel;
use crate::value::{Kind, Value};
use crate::view::ViewError;
use crate::view::buffer::MAX_TILE;

impl Kernel {
    /// A fragment of values that this thread has computed: `words` in the order of `tv`, which maps (thread, value) to the element of the tile, its first mode fastest. A word of
    /// 16-bit floats holds two values, the first in the low half. So a product takes an operand that is decoded from memory: where `tv` is the operand's
    /// ([`TiledMma::tensor_tv`](layout_core::TiledMma::tensor_tv)), no data moves.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let (lane, tile) = (k.lane(), Layout::parse("(16,16):(1,16)")?);
    /// let ones = F32::from(1.0).pair_f16(&mut k, 1.0);
    /// let a = k.fragment([16, 16], &mma.tensor_tv(Operand::A, &tile)?, lane, &[ones; 4])?;
    /// assert_eq!((a.shape(), a.values()), (&[16, 16][..], 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for a layout that is not of as many threads and values, or does not take every element of the tile.
    #[track_caller]
    pub fn fragment<T: Kind>(
        &mut self,
        shape: [i64; 2],
        tv: &Layout,
        thread: Expr,
        words: &[Value<T>],
    ) -> Result<Fragment, ViewError> {
        self.at_line();
        let each = registers_of(T::ELEMENT, false).1;
        let mut fragment = Fragment {
            element: T::ELEMENT,
            registers: Vec::new(),
            each,
            shape: shape.into(),
            tv: *tv,
            thread,
            origin: self.here(),
        };
        let given = self.pool.facts(thread).hi + 1;
        if let Err(reason) = takes_all(tv, shape, words.len() * each, given) {
            return Err(fragment.refuse("its making", reason));
        }
        fragment.tv = Layout::tuple(&[tv.get(0)?.coalesce(), tv.get(1)?.coalesce()])?;
        // Registers of its own: it may be set again.
        fragment.registers = words
            .iter()
            .map(|word| word.copied(self).register(self))
            .collect();
        Ok(fragment)
    }
}

/// Whether a layout is of so many threads and values, and takes every element of a tile.
fn takes_all(
    tv: &Layout,
    [rows, columns]: [i64; 2],
    values: usize,
    threads: i128,
) -> Result<(), String> {
    let elements = rows.saturating_mul(columns);
    if rows < 1 || columns < 1 || elements > MAX_TILE || tv.size() > MAX_TILE {
        return Err(format!("a tile has 1 to {MAX_TILE} elements"));
    }
    let (Ok(of_threads), Ok(of_values)) = (tv.get(0), tv.get(1)) else {
        return Err(format!("{tv} has no two modes, (thread, value)"));
    };
    if tv.rank() != 2
        || i128::from(of_threads.size()) != threads
        || of_values.size() != values as i64
    {
        return Err(format!(
            "{tv} is given {threads} threads and {values} values of each: let it have two modes, (thread, value), of these sizes"
        ));
    }
    let mut taken = vec![false; elements as usize];
    for i in 0..tv.size() {
        let x = tv.index(i);
        match usize::try_from(x).ok().and_then(|x| taken.get_mut(x)) {
            Some(taken) => *taken = true,
            None => {
                return Err(format!(
                    "{tv} gives {x}, and the tile has {elements} elements"
                ));
            }
        }
    }
    match taken.iter().position(|taken| !taken) {
        Some(x) => Err(format!("{tv} does not give element {x} of the tile")),
        None => Ok(()),
    }
}
