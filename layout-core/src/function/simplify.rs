//! A composition of several steps as one swizzled layout, where it is one.

use super::Function;
use crate::chain::Chain;
use crate::f2::LinearMap;
use crate::layout::Layout;
use crate::modes::{Modes, SEARCH_LIMIT};
use crate::profile::ProfileBuilder;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// The chain as one swizzled layout where it is one: over F2, or from its values.
pub(super) const fn simplest(chain: &Chain) -> Function {
    if let Some(layout) = chain.as_layout() {
        return Function::Layout(layout);
    }
    if let Some(inner) = &chain.inner() {
        if let Some(layout) = through_bits(chain, inner) {
            return Function::Layout(layout);
        }
        if let Some(layout) = from_values(chain, &inner.layout) {
            return Function::Layout(layout);
        }
    }
    Function::Chain(*chain)
}

/// The composition as a product of bit matrices, where there are such and the product is a swizzled layout again. The value at
/// 0 may be any that shares no bits with the others. Checked element by element.
const fn through_bits(chain: &Chain, inner: &Swizzled) -> Option<Swizzled> {
    if inner.size() > SEARCH_LIMIT {
        return None;
    }
    let Some(map) = linear_part(chain, inner) else {
        return None;
    };
    let Ok(flat) = map.to_layout() else {
        return None;
    };
    let Ok(nested) = Layout::compact(inner.shape()) else {
        return None;
    };
    let offset = flat.swizzle.inverse_apply(chain.index(0));
    let layout = match flat.layout.compose(&nested) {
        Ok(layout) => match Swizzled::new(flat.swizzle, offset, layout) {
            Ok(layout) => layout,
            Err(_) => return None,
        },
        Err(_) => return None,
    };
    if agrees(chain, &layout) {
        Some(layout)
    } else {
        None
    }
}

/// The matrix whose columns are the values at the powers of two, less the value at 0.
const fn linear_part(chain: &Chain, inner: &Swizzled) -> Option<LinearMap> {
    let size = inner.size();
    if size & (size - 1) != 0 {
        return None;
    }
    let bits = size.trailing_zeros();
    let origin = chain.index(0);
    let mut columns = [0u64; 64];
    let mut taken = 0;
    let mut j = 0;
    while j < bits {
        let value = chain.index(1 << j) ^ origin;
        if value < 0 {
            return None;
        }
        columns[j as usize] = value as u64;
        taken |= value as u64;
        j += 1;
    }
    match LinearMap::from_columns(
        columns.split_at(bits as usize).0,
        64 - taken.leading_zeros(),
    ) {
        Ok(map) => Some(map),
        Err(_) => None,
    }
}

/// The plain layout with the chain's values, if there is one. A layout is determined by its values: along each leaf of the
/// shape the factors are the longest linear runs.
pub(super) const fn from_values(chain: &Chain, shape: &Layout) -> Option<Swizzled> {
    let size = shape.size();
    if size > SEARCH_LIMIT {
        return None;
    }
    let origin = chain.index(0);
    let mut profile = ProfileBuilder::new();
    let mut modes = Modes::<1>::EMPTY;
    let mut running = 1i64;
    let mut leaf = 0;
    while leaf < shape.leaves() {
        let start = modes.len;
        let mut rest = shape.shape[leaf];
        let mut step = running;
        if rest == 1 {
            if modes.len == crate::MAX_MODES {
                return None;
            }
            modes.push(1, [0]);
        }
        while rest > 1 {
            let stride = chain.index(step).wrapping_sub(origin);
            let mut run = 2;
            while run < rest
                && chain.index(step * run).wrapping_sub(origin) == stride.wrapping_mul(run)
            {
                run += 1;
            }
            if rest % run != 0 || modes.len == crate::MAX_MODES {
                return None;
            }
            modes.push(run, [stride]);
            rest /= run;
            step *= run;
        }
        profile.expand(&shape.profile, leaf, modes.len - start);
        running *= shape.shape[leaf];
        leaf += 1;
    }
    let layout = match profile.finish() {
        Ok(profile) => match Layout::UNIT.with_profile(&modes, profile) {
            Ok(layout) => layout,
            Err(_) => return None,
        },
        Err(_) => return None,
    };
    match Swizzled::new(Swizzle::IDENTITY, origin, layout) {
        Ok(layout) if agrees(chain, &layout) => Some(layout),
        _ => None,
    }
}

/// Whether a layout has the chain's value at every coordinate.
const fn agrees(chain: &Chain, layout: &Swizzled) -> bool {
    let size = layout.size();
    let mut i = 0;
    while i < size {
        match (chain.checked_index(i), layout.checked_index(i)) {
            (Ok(a), Ok(b)) if a == b => i += 1,
            _ => return false,
        }
    }
    true
}
