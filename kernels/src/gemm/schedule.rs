//! What a configuration leaves open beside its tile.

/// How the sums of a problem are split, and whether its operands are packed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Schedule {
    /// Into how many parts the sums are split: their partial sums go through memory and are added by a second kernel (split-K). Fewer are
    /// taken if there are not as many tiles along k.
    pub split: u32,
    /// Whether operands whose rows are aligned to less than 16 bytes are first copied to aligned rows by kernels of their own, rather
    /// than copied in narrow pieces by the product's kernel.
    pub pack: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            split: 1,
            pack: false,
        }
    }
}
