//! From a view to an address: the only place where coordinates become bytes.

use layout_core::{Layout, LayoutError};

use super::View;
use crate::index::layout::{combined_index, index, swizzled_index};
use crate::index::{Expr, Node};
use crate::ir::{Address, Arrangement, Kernel, LoopHandle, Place, Space, Stride};

/// A coordinate that is 0 in one iteration of a loop and 1 in the next, such as which of two stages is filled: an exclusive or in each
/// iteration moves an address from one to the other.
#[derive(Clone, Copy, Debug)]
pub struct Alternating<'a> {
    /// The coordinate, as it stands in addresses: a variable that no register holds.
    pub stage: Expr,
    name: &'static str,
    /// What it is, from the loop's counter.
    value: Expr,
    of: &'a LoopHandle,
}

impl<'a> Alternating<'a> {
    /// The coordinate called `name` that equals `value`, which is 0 in the first iteration.
    pub fn new(k: &mut Kernel, name: &'static str, value: Expr, of: &'a LoopHandle) -> Self {
        let level = k.pool.facts(of.counter).level;
        Self {
            stage: k.pool.var(name, 0, 1, level),
            name,
            value,
            of,
        }
    }
}

impl View {
    /// The place of the element at coordinates (in the buffer's order, leading zeros left out) from the view's first.
    pub(crate) fn element(&self, k: &mut Kernel, by: &[Expr]) -> Result<Address, LayoutError> {
        self.element_in(k, by, None)
    }

    /// The same, where coordinates may have an alternating stage in them.
    pub(crate) fn element_in(
        &self,
        k: &mut Kernel,
        by: &[Expr],
        stage: Option<&Alternating<'_>>,
    ) -> Result<Address, LayoutError> {
        // Loads and stores take the place in the own block, and the rank.
        if self.block.is_some() {
            return Err(LayoutError::Unsupported {
                operation: "a view of another block's shared memory",
                given: "an instruction that reaches the own block alone",
                accepted: "loads and stores of fragments, tiles and elements",
            });
        }
        let e = if let Some(base) = self.base {
            let distance = self.distance(k, by)?;
            k.pool.add(base, distance)
        } else {
            let coordinates = self.coordinates(k, by);
            self.shared_byte(k, &coordinates)?
        };
        let place = self.place(k, by, stage);
        let space = self.space(k);
        Ok(address_in(k, space, e, place, stage))
    }

    /// The view from where a layout points: `map` gives the element `c₀ + n₀·(c₁ + …)` of the modes with a layout (first mode fastest, as
    /// everywhere in the algebra), in shared memory without a swizzle. The two layouts are composed, so that one index is computed and not
    /// one for each mode.
    pub(crate) fn at_index(
        &self,
        k: &mut Kernel,
        map: &Layout,
        at: &[Expr],
    ) -> Result<Self, LayoutError> {
        let buffer = k.buffer(self.buffer);
        let Arrangement::Shared { layout, .. } = &buffer.arrangement else {
            return Ok(self.clone());
        };
        let layout = layout.layout();
        let shape = (0..layout.rank())
            .map(|i| Ok(layout.get(i)?.size()))
            .collect::<Result<Vec<_>, LayoutError>>()?;
        let byte = index(&mut k.pool, &layout.compose(map)?, at)?;
        let base = self.base(k)?;
        let base = k.pool.add(base, byte);
        let mut by = vec![k.pool.constant(0); self.origin.len()];
        for (i, by) in by[..shape.len()].iter_mut().enumerate() {
            let mut unit = vec![0; shape.len()];
            unit[i] = 1;
            let mode = Layout::flat(&shape, &unit)?.compose(map)?;
            *by = index(&mut k.pool, &mode, at)?;
        }
        Ok(Self {
            base: Some(base),
            origin: self.coordinates(k, &by),
            ..self.clone()
        })
    }

    pub(super) fn space(&self, k: &Kernel) -> Space {
        k.buffer(self.buffer).space
    }

    /// What the address of the element at coordinates means.
    pub(super) fn place(
        &self,
        k: &mut Kernel,
        by: &[Expr],
        stage: Option<&Alternating<'_>>,
    ) -> u32 {
        let mut coordinates = self.coordinates(k, by);
        if let Some(stage) = stage {
            for at in &mut coordinates {
                *at = k.pool.substitute(*at, stage.name, stage.value);
            }
        }
        k.place(Place::Element {
            buffer: self.buffer,
            coordinates,
        })
    }

    /// Bytes that coordinates are away from the view's first element: in shared memory, of a layout that adds them up.
    pub(super) fn distance(&self, k: &mut Kernel, by: &[Expr]) -> Result<Expr, LayoutError> {
        let buffer = k.buffer(self.buffer);
        let bytes = buffer.bytes;
        match buffer.arrangement.clone() {
            Arrangement::Global { strides, .. } => {
                let strides = &strides[strides.len() - by.len()..];
                strided_distance(k, bytes, strides, by)
            }
            Arrangement::Shared { layout, outer, .. } => {
                let mut all = vec![k.pool.constant(0); self.origin.len() - by.len()];
                all.extend(by);
                let (inner, stages) = all.split_at(all.len() - outer.len());
                let byte = index(&mut k.pool, &layout.layout(), inner)?;
                Ok(further(k, byte, stages, &outer))
            }
        }
    }

    /// Bytes from the start of the kernel's shared memory to what the outer modes of coordinates select.
    pub(super) fn outer_bytes(&self, k: &mut Kernel, coordinates: &[Expr]) -> Expr {
        match k.buffer(self.buffer).arrangement.clone() {
            Arrangement::Global { .. } => k.pool.constant(0),
            Arrangement::Shared { outer, offset, .. } => {
                let start = k.pool.constant(offset);
                further(
                    k,
                    start,
                    &coordinates[coordinates.len() - outer.len()..],
                    &outer,
                )
            }
        }
    }

    /// The address in shared memory of coordinates of the buffer.
    pub(super) fn shared_byte(
        &self,
        k: &mut Kernel,
        coordinates: &[Expr],
    ) -> Result<Expr, LayoutError> {
        let Arrangement::Shared { layout, outer, .. } = &k.buffer(self.buffer).arrangement else {
            return Ok(k.pool.constant(0));
        };
        let (layout, inner) = (*layout, coordinates.len() - outer.len());
        let byte = swizzled_index(&mut k.pool, &layout, &coordinates[..inner])?;
        let start = self.outer_bytes(k, coordinates);
        let byte = k.pool.add(byte, start);
        let smem = k.shared_base();
        Ok(k.pool.add(byte, smem))
    }
}

/// `from + Σ at·stride`
fn further(k: &mut Kernel, from: Expr, at: &[Expr], strides: &[i64]) -> Expr {
    at.iter().zip(strides).fold(from, |sum, (&at, &stride)| {
        let part = k.pool.scale(at, stride);
        k.pool.add(sum, part)
    })
}

/// Bytes of coordinates, by strides in elements of `bytes` bytes.
pub(super) fn strided_distance(
    k: &mut Kernel,
    bytes: i64,
    strides: &[Stride],
    by: &[Expr],
) -> Result<Expr, LayoutError> {
    let rank = strides.len();
    // Contiguous modes first: an address is a column plus a row.
    let mut terms = Vec::new();
    for (i, stride) in strides.iter().enumerate().rev() {
        let mut unit = vec![0; rank];
        let value = match stride {
            Stride::Fixed(s) => {
                unit[i] = s * bytes;
                None
            }
            // A product is scaled to bytes once, so that a coordinate that counts iterations takes one multiply-add.
            Stride::Value(e) if matches!(k.pool.node(*e), Node::Mul(..)) => {
                unit[i] = 1;
                Some(k.pool.scale(*e, bytes))
            }
            Stride::Value(e) => {
                unit[i] = bytes;
                Some(*e)
            }
        };
        terms.push((value, Layout::flat(&vec![1; rank], &unit)?));
    }
    combined_index(&mut k.pool, &terms, by)
}

/// The operand for an address, in an iteration or for the whole scope.
pub(super) fn address_in(
    k: &mut Kernel,
    space: Space,
    e: Expr,
    place: u32,
    stage: Option<&Alternating<'_>>,
) -> Address {
    let Some(stage) = stage else {
        return k.address(space, e, place);
    };
    if let Some(at) = k.alternating(space, e, stage.name, stage.of, place) {
        return at;
    }
    // Recomputed in each iteration.
    let e = k.pool.substitute(e, stage.name, stage.value);
    k.address(space, e, place)
}
