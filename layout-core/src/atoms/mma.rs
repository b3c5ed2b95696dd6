//! A matrix instruction as layouts.

use super::{Scalar, Target};
use crate::error::{LayoutError, attempt};
use crate::layout::Layout;

const OPERATION: &str = "an mma atom";

/// A matrix instruction: `D (m×n) = A (m×k) · B (k×n) + C`, with the thread-value layouts of its operands.
///
/// An instruction may compute several independent products of that shape ([`blocks`](Self::blocks)): the four quad pairs of
/// Volta's `m8n8k4`, or the blocks of AMD's `4x4x1_16b`. The block is then the slowest axis of every operand.
///
/// ```
/// use layout_core::atoms::MMA_M16N8K16_F16;
/// let mma = MMA_M16N8K16_F16;
/// assert_eq!([mma.m, mma.n, mma.k, mma.threads], [16, 8, 16, 32]);
/// // Value 2 of lane 5 is row 9, column 2 of C.
/// assert_eq!(mma.c.at(&[5, 2]), 9 + 16 * 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
#[non_exhaustive]
pub struct MmaAtom {
    /// The instruction in PTX (for wgmma, without the operands' immediates), or AMD's mnemonic.
    pub name: &'static str,
    /// Rows of A, C and D.
    pub m: i64,
    /// Columns of B, C and D.
    pub n: i64,
    /// Columns of A, rows of B.
    pub k: i64,
    /// Independent products that the instruction computes.
    pub blocks: i64,
    /// Threads that execute it together: 32 or 64 (a warp or wave) or 128 (a warpgroup).
    pub threads: i64,
    /// Element type of A.
    pub a_type: Scalar,
    /// Element type of B.
    pub b_type: Scalar,
    /// Element type of C.
    pub c_type: Scalar,
    /// Element type of D.
    pub d_type: Scalar,
    /// A: `(thread, value) -> m + M·k + M·K·block`. For wgmma, of A in registers.
    pub a: Layout,
    /// B: `(thread, value) -> n + N·k + N·K·block`. For wgmma, whose B is read from shared memory through a descriptor, every
    /// thread stands for the whole of B: `(128, (N, K)):(0, (1, N))`.
    pub b: Layout,
    /// C: `(thread, value) -> m + M·n + M·N·block`.
    pub c: Layout,
    /// D: the same map as C, except where Volta's `m8n8k4` takes C in `f16` and gives D in `f32`.
    pub d: Layout,
    /// Bits of a register that a value of A, B, C and D takes: its width, or more where narrow values lie in wider slots.
    pub slot_bits: [i64; 4],
    /// The processors that have the instruction.
    pub target: Target,
}

impl MmaAtom {
    /// An atom of one block, whose D has the type and the map of C.
    ///
    /// `shape` is M, N, K; `types` and `operands` are of A, B and C. Threads are counted by the layouts, which must agree.
    ///
    /// ```
    /// use layout_core::atoms::{MmaAtom, Scalar, Target};
    /// use layout_core::{Layout, expect};
    /// // Four lanes multiply 2x1 by 1x2: every lane holds one element of C; those of A and B are held twice.
    /// const TINY: MmaAtom = expect(MmaAtom::new(
    ///     "tiny.m2n2k1",
    ///     [2, 2, 1],
    ///     [Scalar::F32; 3],
    ///     [
    ///         expect(Layout::tuple(&[expect(Layout::flat(&[2, 2], &[1, 0])), expect(Layout::mode(1, 0))])),
    ///         expect(Layout::tuple(&[expect(Layout::flat(&[2, 2], &[0, 1])), expect(Layout::mode(1, 0))])),
    ///         expect(Layout::flat(&[4, 1], &[1, 0])),
    ///     ],
    ///     Target::Sm(50),
    /// ));
    /// assert_eq!((TINY.threads, TINY.values()), (4, [1, 1, 1]));
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`checked`](Self::checked).
    pub const fn new(
        name: &'static str,
        shape: [i64; 3],
        types: [Scalar; 3],
        operands: [Layout; 3],
        target: Target,
    ) -> Result<Self, LayoutError> {
        let threads = attempt!(operands[0].get(0)).size();
        Self::unchecked(
            name,
            [shape[0], shape[1], shape[2], 1],
            threads,
            types,
            operands,
            target,
        )
        .checked()
    }

    /// The same for an instruction of several independent products.
    ///
    /// ```
    /// use layout_core::atoms::MMA_M16N8K16_F16;
    /// let mma = MMA_M16N8K16_F16;
    /// assert_eq!(mma.with_blocks(1, [mma.a, mma.b, mma.c]), Ok(mma));
    /// // The same layouts do not hold the elements of two products.
    /// assert!(mma.with_blocks(2, [mma.a, mma.b, mma.c]).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`checked`](Self::checked).
    pub const fn with_blocks(
        mut self,
        blocks: i64,
        operands: [Layout; 3],
    ) -> Result<Self, LayoutError> {
        self.blocks = blocks;
        [self.a, self.b, self.c] = operands;
        self.d = self.c;
        self.checked()
    }

    /// The same with a D of another type or map than C.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_M16N8K16_F16_F16, Scalar};
    /// // `f16` accumulators in, `f32` accumulators out.
    /// let mixed = MMA_M16N8K16_F16_F16.with_d(Scalar::F32, MMA_M16N8K16_F16_F16.c).unwrap();
    /// assert_eq!((mixed.c_type, mixed.d_type), (Scalar::F16, Scalar::F32));
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`checked`](Self::checked).
    pub const fn with_d(mut self, d_type: Scalar, d: Layout) -> Result<Self, LayoutError> {
        self.d_type = d_type;
        self.d = d;
        self.slot_bits[3] = d_type.bits();
        self.checked()
    }

    /// The same with wider register slots for the values of A, B, C and D.
    ///
    /// ```
    /// use layout_core::atoms::MMA_M16N8K16_F16_F16;
    /// let wide = MMA_M16N8K16_F16_F16.with_slots([16, 16, 32, 32]).unwrap();
    /// assert_eq!((MMA_M16N8K16_F16_F16.registers()[2], wide.registers()[2]), (2, 4));
    /// assert!(wide.with_slots([8, 16, 32, 32]).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Slots narrower than the values.
    pub const fn with_slots(mut self, slot_bits: [i64; 4]) -> Result<Self, LayoutError> {
        self.slot_bits = slot_bits;
        self.checked()
    }

    /// The atom without the checks, for the tables of this module, whose tests check them.
    pub(super) const fn unchecked(
        name: &'static str,
        [m, n, k, blocks]: [i64; 4],
        threads: i64,
        [a_type, b_type, c_type]: [Scalar; 3],
        [a, b, c]: [Layout; 3],
        target: Target,
    ) -> Self {
        Self {
            name,
            m,
            n,
            k,
            blocks,
            threads,
            a_type,
            b_type,
            c_type,
            d_type: c_type,
            a,
            b,
            c,
            d: c,
            slot_bits: [a_type.bits(), b_type.bits(), c_type.bits(), c_type.bits()],
            target,
        }
    }

    /// Checks that the layouts fit the shape, and returns the atom.
    ///
    /// ```
    /// use layout_core::atoms::MMA_M16N8K16_F16;
    /// let mut mma = MMA_M16N8K16_F16;
    /// assert!(mma.checked().is_ok());
    /// mma.k = 32; // A and B now miss elements
    /// assert_eq!(mma.checked().unwrap_err().code(), "unsupported");
    /// ```
    ///
    /// # Errors
    ///
    /// An extent or number of blocks below 1; an operand that does not have two modes, or has another number of threads than
    /// the atom; A or B that does not hold every element of its matrix, or holds elements outside it; C or D that does not hold
    /// each element exactly once; a slot narrower than its value or wider than 64 bits.
    pub const fn checked(self) -> Result<Self, LayoutError> {
        attempt!(self.check_numbers());
        let matrices = [
            (
                "operand A of an mma atom",
                self.a,
                self.m,
                self.k,
                self.a_type,
            ),
            (
                "operand B of an mma atom",
                self.b,
                self.n,
                self.k,
                self.b_type,
            ),
            (
                "operand C of an mma atom",
                self.c,
                self.m,
                self.n,
                self.c_type,
            ),
            (
                "operand D of an mma atom",
                self.d,
                self.m,
                self.n,
                self.d_type,
            ),
        ];
        let mut i = 0;
        while i < matrices.len() {
            let (name, layout, rows, columns, scalar) = matrices[i];
            if layout.rank() != 2 {
                return Err(LayoutError::WrongRank {
                    what: "the layout (thread, value) of an mma atom's operand",
                    expected: 2,
                    found: layout.rank(),
                });
            }
            let threads = attempt!(layout.get(0)).size();
            if threads != self.threads {
                return Err(LayoutError::NumberMismatch {
                    operation: name,
                    argument: "the number of threads",
                    value: threads,
                    expected: self.threads,
                });
            }
            let elements = rows * columns * self.blocks;
            let covers = if i < 2 {
                let (least, most) = layout.offset_range();
                least >= 0 && most < elements && layout.is_surjective_onto(elements)
            } else {
                layout.size() == elements && layout.is_bijective()
            };
            if !covers {
                return Err(LayoutError::Unsupported {
                    operation: OPERATION,
                    given: if i < 2 {
                        "a layout of A or B that misses elements of the matrix or has others"
                    } else {
                        "a layout of C or D that does not hold each element exactly once"
                    },
                    accepted: "layouts (thread, value) -> row + ROWS*column + ROWS*COLUMNS*block",
                });
            }
            if self.slot_bits[i] < scalar.bits() || self.slot_bits[i] > 64 {
                return Err(LayoutError::NumberOutOfRange {
                    operation: name,
                    argument: "the width of a slot in bits",
                    value: self.slot_bits[i],
                    least: scalar.bits(),
                    most: 64,
                });
            }
            i += 1;
        }
        Ok(self)
    }

    /// Refuses extents, blocks and threads that no instruction has, and whose products could overflow.
    pub(super) const fn check_numbers(&self) -> Result<(), LayoutError> {
        let numbers = [
            ("M", self.m),
            ("N", self.n),
            ("K", self.k),
            ("the number of blocks", self.blocks),
            ("the number of threads", self.threads),
        ];
        let mut i = 0;
        while i < numbers.len() {
            let (argument, value) = numbers[i];
            if value < 1 || value > 1 << 20 {
                return Err(LayoutError::InvalidNumber {
                    operation: OPERATION,
                    argument,
                    value,
                    accepted: "1 to 1048576",
                });
            }
            i += 1;
        }
        Ok(())
    }

    /// Values of A, B and C that a thread holds.
    ///
    /// ```
    /// use layout_core::atoms::MMA_M16N8K16_F16;
    /// assert_eq!(MMA_M16N8K16_F16.values(), [8, 4, 4]);
    /// ```
    pub const fn values(&self) -> [i64; 3] {
        [values(&self.a), values(&self.b), values(&self.c)]
    }

    /// Registers that a thread holds A, B and C in: 32-bit ones, or 64-bit ones for `f64` on NVIDIA. 0 for the B of wgmma.
    ///
    /// ```
    /// use layout_core::atoms::MMA_M16N8K16_F16;
    /// assert_eq!(MMA_M16N8K16_F16.registers(), [4, 2, 4]);
    /// ```
    pub const fn registers(&self) -> [i64; 3] {
        let [a, b, c] = self.values();
        [
            self.registers_of(a, self.slot_bits[0]),
            if self.b_is_shared() {
                0
            } else {
                self.registers_of(b, self.slot_bits[1])
            },
            self.registers_of(c, self.slot_bits[2]),
        ]
    }

    /// Whether B is read from shared memory through a descriptor (wgmma), and not from registers.
    ///
    /// ```
    /// use layout_core::atoms::{self, Scalar};
    /// assert!(atoms::wgmma(64, Scalar::F16, Scalar::F32).unwrap().b_is_shared());
    /// assert!(!atoms::MMA_M16N8K16_F16.b_is_shared());
    /// ```
    pub const fn b_is_shared(&self) -> bool {
        self.threads == 128
    }

    /// Bits of one register: 64 for `f64` on NVIDIA, otherwise 32.
    ///
    /// ```
    /// use layout_core::atoms::{MMA_M16N8K16_F16, MMA_M8N8K4_F64};
    /// assert_eq!((MMA_M16N8K16_F16.register_bits(16), MMA_M8N8K4_F64.register_bits(64)), (32, 64));
    /// ```
    pub const fn register_bits(&self, slot_bits: i64) -> i64 {
        if slot_bits == 64 && !matches!(self.target, Target::Gfx(_)) {
            64
        } else {
            32
        }
    }

    const fn registers_of(&self, values: i64, slot_bits: i64) -> i64 {
        (values * slot_bits + self.register_bits(slot_bits) - 1) / self.register_bits(slot_bits)
    }
}

/// Values that a thread holds.
const fn values(operand: &Layout) -> i64 {
    match operand.get(1) {
        Ok(mode) => mode.size(),
        Err(_) => 0,
    }
}
