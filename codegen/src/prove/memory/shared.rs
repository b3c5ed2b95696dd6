//! Accesses of shared memory: the address of each thread against the layout of its buffer.

use crate::ir::{Arrangement, Extent, Place};
use crate::prove::ProofError;
use crate::prove::algebra::numbers::{Each, Mask, Num};
use crate::prove::algebra::offsets::Offsets;
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::counted::Part;
use crate::prove::walk::execute::Machine;
use crate::prove::walk::memory::Access;
use layout_core::Swizzled;

/// The strides in bytes of the modes of a packed layout without a swizzle, whose elements fill its bytes; none of another one.
fn packed_strides(layout: &Swizzled, bytes: i64) -> Option<Vec<i64>> {
    let plain = layout.layout();
    let mut modes = Vec::new();
    for mode in 0..plain.rank() {
        let of = plain.get(mode).ok()?;
        modes.push((of.leaves() == 1).then(|| of.leaf(0))?);
    }
    let strides: Vec<i64> = modes.iter().map(|(_, stride)| *stride).collect();
    modes.retain(|(extent, _)| *extent > 1);
    modes.sort_unstable_by_key(|(_, stride)| *stride);
    let mut next = bytes;
    let packed = modes.iter().all(|(extent, stride)| {
        let fits = *stride == next;
        next *= extent;
        fits
    });
    (packed && layout.swizzle().is_identity()).then_some(strides)
}

/// An access of a buffer of shared memory, for all threads.
struct Placed<'a> {
    active: Mask,
    /// The first byte of each thread.
    relative: Num,
    /// The coordinates of its element.
    numbers: &'a [Num],
    extents: &'a [Option<i64>],
    /// Strides of the modes that are not the layout's, in bytes.
    outer: &'a [i64],
    /// Bytes before the buffer.
    offset: i64,
    bytes: i64,
    /// Elements at once, and bytes of one.
    width: i64,
    elem: i64,
    /// Bytes of shared memory.
    limit: i64,
}

impl Placed<'_> {
    /// Whether it is inside, aligned, and where the layout says: for all threads at once. Where threads go different ways about it, it may
    /// hold although this says no.
    fn holds(&self, offsets: &mut Offsets) -> bool {
        let inside = |k: Num, n: Option<i64>, more: i64| {
            let range = k.range_of(self.active);
            range.is_none_or(|(lo, hi)| lo >= 0 && n.is_none_or(|n| hi + more <= n))
        };
        let mut modes = self.numbers.iter().zip(self.extents);
        let all_inside = modes.all(|(&k, &n)| inside(k, n, 1));
        let aligned =
            self.bytes.count_ones() == 1 && self.relative.zeros() >= self.bytes.trailing_zeros();
        if !all_inside || !aligned || !inside(self.relative, Some(self.limit), self.bytes) {
            return false;
        }
        let (inner, others) = self.numbers.split_at(self.numbers.len() - self.outer.len());
        let Some(first) = offsets.of_numbers(inner) else {
            return false;
        };
        let mut byte = first.plus(self.offset);
        for (k, stride) in others.iter().zip(self.outer) {
            byte = byte.add(k.scale(*stride));
        }
        if !byte.is_equal(self.relative, self.active) {
            return false;
        }
        // The elements of a vector are neighbours along one mode.
        let mut at = inner.to_vec();
        self.width == 1
            || (0..inner.len()).any(|mode| {
                let first_along = at[mode];
                let follow = inside(first_along, self.extents[mode], self.width)
                    && (1..self.width).all(|v| {
                        at[mode] = first_along.plus(v);
                        let next = offsets.of_numbers(&at);
                        let wanted = first.plus(v * self.elem);
                        next.is_some_and(|next| next.is_equal(wanted, self.active))
                    });
                at[mode] = first_along;
                follow
            })
    }
}

impl Machine<'_> {
    /// An access by an index from data: the address is the layout's, inside the buffer, and for the order of accesses it may be any element of that.
    pub(in crate::prove) fn anywhere(
        &mut self,
        part: &Part,
        facts: &Facts,
        found: &mut Access,
    ) -> Result<(), ProofError> {
        let (buffer, coordinates, bytes) = (part.buffer, &part.coordinates, found.bytes);
        let undecided = |what: &str| ProofError::Undecided {
            what: format!("{}: {what}", found.name),
        };
        let info = &self.entry.buffers[buffer];
        let Arrangement::Shared { layout, offset, .. } = &info.arrangement else {
            return Err(undecided("a place that is not in shared memory"));
        };
        let (offset, extents) = (offset + layout.offset(), info.extents.clone());
        let strides = packed_strides(layout, info.bytes);
        let single = i64::from(bytes) == info.bytes && coordinates.len() == extents.len();
        let Some(strides) = strides.filter(|s| single && s.len() == extents.len()) else {
            return Err(undecided(
                "an index from data into shared memory is for single elements of a packed tile without a swizzle",
            ));
        };
        let mut wanted = Lin::constant(offset);
        let mut size = i64::from(bytes);
        for (mode, ((c, extent), stride)) in
            coordinates.iter().zip(&extents).zip(&strides).enumerate()
        {
            let Extent::Fixed(n) = *extent else {
                return Err(undecided("a tile in shared memory without an extent"));
            };
            let room = Lin::constant(n - 1).sub(c);
            let symbols = &mut self.symbols;
            if !symbols.at_least_zero(c, facts) || !symbols.at_least_zero(&room, facts) {
                return Err(ProofError::Bounds {
                    access: found.name.clone(),
                    thread: facts.active.first().unwrap_or(0),
                    mode,
                });
            }
            wanted = wanted.add(&c.scale(*stride));
            size *= n;
        }
        if !self.symbols.is_zero(&part.relative.sub(&wanted), facts) {
            return Err(ProofError::Address {
                access: found.name.clone(),
                thread: facts.active.first().unwrap_or(0),
            });
        }
        found.take(Num::same(offset), facts.active, buffer as u16);
        (found.bytes, found.exact, found.maybe) = (size as u32, false, true);
        self.addresses += 1;
        Ok(())
    }

    /// The elements that an access is of, with the threads of each: two where threads choose.
    pub(in crate::prove) fn parts(
        &mut self,
        name: &str,
        place: u32,
        address: &Lin,
        facts: &Facts,
    ) -> Result<Vec<Part>, ProofError> {
        match self.place(place)? {
            Place::Either {
                when,
                then,
                otherwise,
            } => {
                let [a, b] = self.sides(when, facts)?;
                let mut parts = self.parts(name, then, address, &a)?;
                parts.extend(self.parts(name, otherwise, address, &b)?);
                Ok(parts)
            }
            Place::Element {
                buffer,
                coordinates,
            } => {
                let arrangement = &self.entry.buffers[buffer].arrangement;
                if !matches!(arrangement, Arrangement::Shared { .. }) {
                    return Err(ProofError::Undecided {
                        what: format!("{name}: a place in global memory by a shared address"),
                    });
                }
                let coordinates = coordinates.into_iter().map(|e| self.evaluate(e));
                let coordinates: Vec<Lin> = coordinates.collect();
                let relative = address.sub(&self.shared_base());
                Ok(vec![Part {
                    buffer,
                    relative,
                    coordinates,
                    active: facts.active,
                }])
            }
        }
    }

    /// Whether its address comes from data.
    pub(in crate::prove) fn is_of_data(&self, part: &Part) -> bool {
        let mut values = part.coordinates.iter().chain([&part.relative]);
        values.any(|x| self.symbols.is_of_data(x))
    }

    /// The modes of a buffer that its layout has, and the strides of the others.
    fn modes(&self, part: &Part) -> (usize, &[i64]) {
        match &self.entry.buffers[part.buffer].arrangement {
            Arrangement::Shared { outer, .. } => (part.coordinates.len() - outer.len(), outer),
            Arrangement::Global { .. } => (part.coordinates.len(), &[]),
        }
    }

    /// Whether its address is a matter of numbers.
    pub(in crate::prove) fn is_of_numbers(&self, part: &Part) -> bool {
        let (inner, outer) = self.modes(part);
        let mut coordinates = part.coordinates.iter().enumerate();
        part.relative.as_number().is_some()
            && coordinates.all(|(mode, c)| {
                (mode >= inner && outer[mode - inner] == 0) || c.as_number().is_some()
            })
    }

    /// Holds the address of an element against the layout of its buffer, for all its threads.
    pub(in crate::prove) fn placed(
        &mut self,
        part: &Part,
        found: &mut Access,
    ) -> Result<(), ProofError> {
        let Part {
            buffer,
            relative,
            coordinates,
            active,
        } = part;
        let (buffer, active) = (*buffer, *active);
        let name = found.name.clone();
        let info = &self.entry.buffers[buffer];
        let Arrangement::Shared {
            layout,
            outer,
            offset,
        } = &info.arrangement
        else {
            return Err(ProofError::Undecided {
                what: format!("{name}: a place in global memory by a shared address"),
            });
        };
        let elem = info.bytes;
        let width = (i64::from(found.bytes) / elem).max(1);
        let inner = coordinates.len() - outer.len();
        let Some(relative) = relative.as_number() else {
            return Err(ProofError::Undecided {
                what: format!(
                    "{name}: an address in shared memory that depends on more than the thread and the iteration"
                ),
            });
        };
        let mut version = Vec::new();
        let mut numbers: Vec<Num> = Vec::new();
        for (mode, c) in coordinates.iter().enumerate() {
            if mode >= inner && outer[mode - inner] == 0 {
                // It is no part of the address: it tells which of the values that are kept here one after the other is meant.
                if !self.symbols.is_uniform(c) {
                    return Err(ProofError::Undecided {
                        what: format!("{name}: threads that are in different passes"),
                    });
                }
                version.push(*c);
                numbers.push(Num::ZERO);
                continue;
            }
            match c.as_number() {
                Some(k) => numbers.push(k),
                None => {
                    return Err(ProofError::Undecided {
                        what: format!(
                            "{name}: a coordinate in shared memory that depends on more than the thread and the iteration"
                        ),
                    });
                }
            }
        }
        // Both sides of a choice are of the same pass.
        if !found.active.is_empty() && found.version != version {
            return Err(ProofError::Undecided {
                what: format!("{name}: threads that are in different passes"),
            });
        }
        found.version = version;
        let extents = info.fixed_extents();
        let limit = self.entry.shared.map_or(0, |s| s.bytes) as i64;
        found.take(relative, active, buffer as u16);
        self.addresses += 1;
        let known = self.offsets.remove(&buffer);
        let mut offsets = known.unwrap_or_else(|| Offsets::of(layout, &extents[..inner]));
        let access = Placed {
            active,
            relative,
            numbers: &numbers,
            extents: &extents,
            outer,
            offset: *offset,
            bytes: found.bytes.into(),
            width,
            elem,
            limit,
        };
        if access.holds(&mut offsets) {
            self.offsets.insert(buffer, offsets);
            return Ok(());
        }
        // Thread by thread, to say which one.
        let mut at = vec![0i64; inner];
        let active = active.list();
        let relative = relative.values();
        let numbers: Vec<Each> = numbers.iter().map(|k| k.values()).collect();
        for thread in 0..self.threads {
            if !active[thread] {
                continue;
            }
            for (mode, (k, extent)) in numbers.iter().zip(&extents).enumerate() {
                let k = k.at(thread);
                if k < 0 || extent.is_some_and(|n| k >= n) {
                    return Err(ProofError::Bounds {
                        access: name,
                        thread,
                        mode,
                    });
                }
            }
            for (slot, k) in at.iter_mut().zip(&numbers) {
                *slot = k.at(thread);
            }
            let mut byte = offsets.at(&at) + offset;
            for (k, stride) in numbers[inner..].iter().zip(outer) {
                byte += k.at(thread) * stride;
            }
            let real = relative.at(thread);
            if byte != real {
                return Err(ProofError::Address {
                    access: name,
                    thread,
                });
            }
            if real % i64::from(found.bytes) != 0 {
                return Err(ProofError::Alignment {
                    access: name,
                    bytes: found.bytes,
                });
            }
            if real < 0 || real + i64::from(found.bytes) > limit {
                return Err(ProofError::Bounds {
                    access: name,
                    thread,
                    mode: inner,
                });
            }
            // The elements of a vector are neighbours along one mode.
            if width > 1 && !offsets.are_neighbours(&mut at, width, elem) {
                return Err(ProofError::Address {
                    access: name,
                    thread,
                });
            }
        }
        self.offsets.insert(buffer, offsets);
        Ok(())
    }
}
