//! The obligations of an operand: its fragments are those of the atom, its vectors are whole, its accesses cost what is stated.

use layout_core::atoms::MmaAtom;
use layout_core::banks;

use super::MmaPlan;
use super::operand::{OperandMaps, Read, pairs};
use crate::gemm::{Obligation, PlanError, Refusal};
use crate::prove::AccessProof;

/// (lane) → byte, from row-major element indices.
pub(super) fn bytes_of(maps: &OperandMaps, elements: &[i64; 32]) -> [i64; 32] {
    elements.map(|e| maps.shared.at(&[e / maps.cols, e % maps.cols]))
}

impl MmaPlan {
    /// The wavefronts of an access whose first execution has these byte offsets, for every other warp, row, k step and
    /// stage: they move all lanes by multiples of the tile's own strides, which the proof takes from the layout.
    pub(super) fn prove_lanes(
        &self,
        name: &str,
        op: banks::Access,
        o: &OperandMaps,
        lanes: &[i64; 32],
    ) -> Result<AccessProof, PlanError> {
        let refuse = |reason: String| Refusal {
            obligation: format!("wavefronts of {name}"),
            reason,
        };
        let first =
            banks::wavefronts(&banks::NVIDIA, op, lanes).map_err(|e| refuse(e.to_string()))?;
        // Every other place of the same pattern in the tile.
        let is_copy = name.starts_with("copy");
        for moved in self.translations(o, is_copy) {
            let elements = if is_copy {
                o.write_pattern().elements
            } else {
                o.read_pattern().elements
            };
            let there = bytes_of(o, &elements.map(|e| e + moved));
            let w =
                banks::wavefronts(&banks::NVIDIA, op, &there).map_err(|e| refuse(e.to_string()))?;
            if w.wavefronts != first.wavefronts {
                return Err(refuse(format!(
                    "{} at the first place, {} at element {moved}",
                    first.wavefronts, w.wavefronts
                ))
                .into());
            }
        }
        Ok(AccessProof {
            access: name.to_owned(),
            op,
            wavefronts: first.wavefronts,
            ideal: first.ideal,
        })
    }

    /// Row-major element distances of every place in the tile where an access is made.
    fn translations(&self, o: &OperandMaps, is_copy: bool) -> Vec<i64> {
        if is_copy {
            let threads = self.thread_count();
            let values = o.copy.size() / threads / o.vector;
            let first = o.copy.at(&[0, 0]);
            return (0..threads / 32)
                .flat_map(|w| (0..values).map(move |v| (w, v)))
                .map(|(w, v)| o.copy.at(&[32 * w, v * o.vector]) - first)
                .collect();
        }
        let k_step = match o.read {
            Read::Ldmatrix { .. } | Read::LdmatrixPairs => 32 / o.bytes,
            Read::Elements => self.atom().k,
        };
        let (sides, ks) = if o.k_major {
            (o.rows, o.cols)
        } else {
            (o.cols, o.rows)
        };
        // Every value of a lane is at a distance of its own as well.
        let values: Vec<i64> = match o.read {
            Read::Ldmatrix { .. } | Read::LdmatrixPairs => vec![0],
            Read::Elements => {
                let n = o.fragment.size() / 32;
                let index = |v: i64| {
                    let c = o.fragment.at(&[0, v]);
                    let (row, col) = o.place(c % o.side, c / o.side);
                    row * o.cols + col
                };
                (0..n).map(index).collect()
            }
        };
        let mut all = Vec::new();
        for s in (0..sides).step_by(o.side as usize) {
            for k in (0..ks).step_by(k_step as usize) {
                let (row, col) = o.place(s, k);
                all.extend(values.iter().map(|v| row * o.cols + col + v));
            }
        }
        all
    }
}

/// What `ldmatrix` puts into the registers is what the atom multiplies: lane by lane, byte by byte, from the definition of the
/// instruction (PTX ISA, `ldmatrix`).
pub(super) fn prove_fragment(
    name: &str,
    atom: &MmaAtom,
    o: &OperandMaps,
    is_a: bool,
) -> Result<Obligation, Refusal> {
    let own = if is_a { atom.a } else { atom.b };
    let own_side = if is_a { atom.m } else { atom.n };
    let values = own.size() / 32;
    let refuse = |reason: String| Refusal {
        obligation: name.to_owned(),
        reason,
    };
    let trans = match o.read {
        Read::Ldmatrix { trans } => trans,
        Read::LdmatrixPairs => return prove_pairs(name, atom, o, is_a),
        Read::Elements => {
            return Ok(Obligation {
                name: name.to_owned(),
                evidence: format!("element by element at {own}"),
            });
        }
    };
    let per_register = 4 / o.bytes;
    let registers = values / per_register;
    for lane in 0..32 {
        for register in 0..4 {
            for part in 0..per_register {
                // The definition: register j of a lane comes from matrix j, row lane/4 (or column, transposed).
                let (row, byte) = if trans {
                    (2 * (lane % 4) + part, 2 * (lane / 4))
                } else {
                    (lane / 4, 4 * (lane % 4) + part * o.bytes)
                };
                let pointed = o.points.index(8 * register + row);
                let (side, k) = (pointed % o.side, pointed / o.side);
                let along = byte / o.bytes;
                let delivered = if o.k_major {
                    (side, k + along)
                } else {
                    (side + along, k)
                };
                // What the atom wants there; the second half of B's registers belongs to the next atom.
                let (which, value) = (
                    register / registers,
                    (register % registers) * per_register + part,
                );
                let wanted = own.at(&[lane, value]);
                let wanted = (wanted % own_side + which * own_side, wanted / own_side);
                if delivered != wanted {
                    return Err(refuse(format!(
                        "lane {lane}, register {register} gets (side, k) = {delivered:?} and the atom wants {wanted:?}"
                    )));
                }
            }
        }
    }
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!(
            "lanes point at {}; all 32 lanes and 4 registers compared with {own}",
            o.points
        ),
    })
}

/// What `ldmatrix.trans` and `prmt` put into the registers is what the atom multiplies, up to the order of the side that C has as well:
/// byte by byte, from the definitions of the two instructions (PTX ISA, `ldmatrix` and `prmt`).
fn prove_pairs(
    name: &str,
    atom: &MmaAtom,
    o: &OperandMaps,
    is_a: bool,
) -> Result<Obligation, Refusal> {
    let own = if is_a { atom.a } else { atom.b };
    let own_side = if is_a { atom.m } else { atom.n };
    let refuse = |reason: String| Refusal {
        obligation: name.to_owned(),
        reason,
    };
    let arrangement = o.arrangement().map_err(|e| refuse(e.to_string()))?;
    for lane in 0..32 {
        for (h, neighbour, byte) in
            (0..2).flat_map(|h| (0..2).flat_map(move |n| (0..4).map(move |i| (h, n, i))))
        {
            // prmt: a byte of two registers. ldmatrix.trans: rows 2·(lane mod 4) and the next, column lane / 4 of 16 bits.
            let source = pairs::source(neighbour, byte);
            let (matrix, part) = (2 * h + source / 4, source % 4);
            let row = 2 * (lane % 4) + part / 2;
            let pointed = o.points.index(8 * matrix + row);
            let delivered = (
                pointed % o.side + 2 * (lane / 4) + part % 2,
                pointed / o.side,
            );
            let (which, register) = pairs::target(is_a, h, neighbour);
            let wanted = own.at(&[lane, 4 * register + byte]);
            let side = arrangement.index(wanted % own_side + which * own_side);
            if delivered != (side, wanted / own_side) {
                return Err(refuse(format!(
                    "lane {lane}, register {register}, byte {byte} gets (side, k) = {delivered:?} and the atom wants {:?}",
                    (side, wanted / own_side)
                )));
            }
        }
    }
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!(
            "lanes point at {}; all 32 lanes and 16 bytes compared with {own}, the side in the order {arrangement}",
            o.points
        ),
    })
}

/// A copy's elements are neighbours in the stage and start at a multiple of its size.
pub(super) fn prove_vectors(name: &str, o: &OperandMaps) -> Result<Obligation, Refusal> {
    let what = format!("each vector of {name} is contiguous and aligned in shared memory");
    let size = o.vector * o.bytes;
    let at = |i: i64| {
        let e = o.copy.index(i);
        o.shared.at(&[e / o.cols, e % o.cols])
    };
    let threads = o.copy.get(0).map_or(1, |t| t.size());
    for t in 0..threads {
        for v in 0..o.copy.size() / threads {
            let (byte, first) = (at(t + threads * v), at(t + threads * (v - v % o.vector)));
            if byte != first + (v % o.vector) * o.bytes || first % size != 0 {
                let reason = format!(
                    "thread {t}, value {v} goes to byte {byte}, its vector starts at {first}"
                );
                return Err(Refusal {
                    obligation: what,
                    reason,
                });
            }
        }
    }
    Ok(Obligation {
        name: what,
        evidence: format!("{} at {size} bytes", o.shared),
    })
}

/// An instruction of half the depth multiplies the two halves of a fragment: those registers hold what it wants.
pub(super) fn prove_halves(whole: &MmaAtom, half: &MmaAtom) -> Result<Obligation, Refusal> {
    let name = format!(
        "{} multiplies the fragments of {} in two steps",
        half.name, whole.name
    );
    for (own, part, side) in [(whole.a, half.a, whole.m), (whole.b, half.b, whole.n)] {
        let values = part.size() / 32;
        for lane in 0..32 {
            for v in 0..2 * values {
                let (step, value) = (v / values, v % values);
                let wanted = part.at(&[lane, value]) + side * half.k * step;
                let held = own.at(&[lane, v]);
                if held != wanted {
                    return Err(Refusal {
                        obligation: name,
                        reason: format!("lane {lane}, value {v} is {held} and not {wanted}"),
                    });
                }
            }
        }
    }
    Ok(Obligation {
        name,
        evidence: format!("{} and {}, value by value", half.a, half.b),
    })
}
