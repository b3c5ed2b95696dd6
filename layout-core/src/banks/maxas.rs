//! The maxas register allocation of the 8x8 outer product, and the search for an order of its 64 multiply-adds.
//!
//! A thread of the maxas SGEMM owns 8x8 elements of C; each step of K is 64 FFMAs `C(i,j) += A(i) * B(j)`. The allocation
//! keeps C out of A's and B's banks, which leaves the 16 pairs with `i = j (mod 4)`: A(i) and B(j) share a bank. An order
//! that walks from pair to pair keeping A or B in its slot's reuse cache hides them all.
//!
//! The row-major walk breaks both at the end of each row, and two of those breaks land on a conflict: 2 stalls in 64.
//!
//! ```
//! use layout_core::banks::{maxas, registers, MAXWELL_REGISTERS};
//! let order = maxas::find_order();
//! assert_eq!(registers::stalls(&MAXWELL_REGISTERS, &maxas::sequence(&order, true)), 0);
//! ```
//!
//! Source: the maxas wiki (SGEMM page) and its published FFMA order (`tests/golden/maxas_sgemm64_ffma_order.csv`).

use super::MAXWELL_REGISTERS;
use super::registers::{Ffma, ReuseCache, flag_reuse};

/// The register of C(i, j), `i` and `j` below 8: `32(i>>2) + [3,7,1,5][i&3] + 8(j>>1) - (j&1)`.
///
/// ```
/// use layout_core::banks::maxas::c_register;
/// assert_eq!((c_register(0, 0), c_register(1, 0), c_register(0, 1)), (3, 7, 2));
/// ```
pub const fn c_register(i: u8, j: u8) -> u16 {
    let low = [3_u16, 7, 1, 5][(i & 3) as usize];
    32 * (i as u16 >> 2 & 1) + low + 8 * (j as u16 >> 1 & 3) - (j as u16 & 1)
}

/// The register of A(i): `64 + i`.
///
/// ```
/// use layout_core::banks::maxas::a_register;
/// assert_eq!(a_register(3), 67);
/// ```
pub const fn a_register(i: u8) -> u16 {
    64 + i as u16
}

/// The register of B(j): `72 + j`.
///
/// ```
/// use layout_core::banks::maxas::b_register;
/// assert_eq!(b_register(3), 75);
/// ```
pub const fn b_register(j: u8) -> u16 {
    72 + j as u16
}

/// The pair (i, j) with this C register, or `None` for a register above 63.
///
/// ```
/// use layout_core::banks::maxas::{c_register, pair_of};
/// assert_eq!(pair_of(c_register(5, 2)), Some((5, 2)));
/// assert_eq!(pair_of(64), None);
/// ```
pub const fn pair_of(register: u16) -> Option<(u8, u8)> {
    let mut i = 0;
    while i < 8 {
        let mut j = 0;
        while j < 8 {
            if c_register(i, j) == register {
                return Some((i, j));
            }
            j += 1;
        }
        i += 1;
    }
    None
}

/// The FFMA of a pair, without flags.
///
/// ```
/// use layout_core::banks::maxas::ffma;
/// assert_eq!(ffma((1, 0)).sources, [65, 72, 7]); // A(1), B(0), C(1, 0)
/// ```
pub const fn ffma(pair: (u8, u8)) -> Ffma {
    Ffma::new([
        a_register(pair.0),
        b_register(pair.1),
        c_register(pair.0, pair.1),
    ])
}

/// The FFMAs of the pairs in this order, with all reuse flags that save a read, or without flags.
///
/// ```
/// use layout_core::banks::{MAXWELL_REGISTERS, maxas, registers::stalls};
/// let order = maxas::row_major_order();
/// assert_eq!(stalls(&MAXWELL_REGISTERS, &maxas::sequence(&order, false)), 16);
/// assert_eq!(stalls(&MAXWELL_REGISTERS, &maxas::sequence(&order, true)), 2);
/// ```
pub const fn sequence(order: &[(u8, u8); 64], reuse: bool) -> [Ffma; 64] {
    let mut sequence = [Ffma::new([0; 3]); 64];
    let mut n = 0;
    while n < 64 {
        sequence[n] = ffma(order[n]);
        n += 1;
    }
    if reuse {
        flag_reuse(&mut sequence);
    }
    sequence
}

/// The plain order: `j` fastest.
///
/// ```
/// use layout_core::banks::maxas::row_major_order;
/// assert_eq!(row_major_order()[..9].last(), Some(&(1, 0)));
/// ```
pub const fn row_major_order() -> [(u8, u8); 64] {
    let mut order = [(0, 0); 64];
    let mut n = 0;
    while n < 64 {
        order[n] = (n as u8 / 8, n as u8 % 8);
        n += 1;
    }
    order
}

/// Searches an order without stalls, each step keeping A or B: depth first over the neighbours in the same row or column,
/// fewest continuations first (Warnsdorff's rule), with backtracking. Every step but the first then reads two registers
/// instead of three, which no order of 64 different C registers can better.
///
/// ```
/// use layout_core::banks::maxas::find_order;
/// let order = find_order();
/// // Each step keeps A (the first of the pair) or B.
/// assert!(order.windows(2).all(|w| w[0].0 == w[1].0 || w[0].1 == w[1].1));
/// ```
pub const fn find_order() -> [(u8, u8); 64] {
    let mut start = 0;
    let mut order = [(0, 0); 64];
    while start < 64 {
        let first = (start / 8, start % 8);
        if ReuseCache::new().reads(&MAXWELL_REGISTERS, &ffma(first)).0 == 1 {
            let mut used = 0_u64;
            order[0] = first;
            used |= 1 << start;
            if extend(&mut order, 1, used) {
                return order;
            }
        }
        start += 1;
    }
    order
}

/// Whether the pair can follow `previous` without a stall while A or B stays in its slot.
const fn follows(previous: (u8, u8), next: (u8, u8)) -> bool {
    if (previous.0 == next.0) == (previous.1 == next.1) {
        return false;
    }
    let mut cache = ReuseCache::new();
    let kept = ffma(previous).reusing([previous.0 == next.0, previous.1 == next.1, false]);
    cache.issue(&MAXWELL_REGISTERS, &kept);
    cache.reads(&MAXWELL_REGISTERS, &ffma(next)).0 == 1
}

const fn ways_out(pair: (u8, u8), used: u64) -> u32 {
    let mut count = 0;
    let mut n = 0;
    while n < 64 {
        if used >> n & 1 == 0 && follows(pair, (n / 8, n % 8)) {
            count += 1;
        }
        n += 1;
    }
    count
}

const fn extend(order: &mut [(u8, u8); 64], len: usize, used: u64) -> bool {
    if len == 64 {
        return true;
    }
    let mut tried = used;
    loop {
        let mut best = 64_u8;
        let mut fewest = u32::MAX;
        let mut n = 0_u8;
        while n < 64 {
            if tried >> n & 1 == 0 && follows(order[len - 1], (n / 8, n % 8)) {
                let ways = ways_out((n / 8, n % 8), used | 1 << n);
                if ways < fewest {
                    fewest = ways;
                    best = n;
                }
            }
            n += 1;
        }
        if best == 64 {
            return false;
        }
        tried |= 1 << best;
        order[len] = (best / 8, best % 8);
        if extend(order, len + 1, used | 1 << best) {
            return true;
        }
    }
}
