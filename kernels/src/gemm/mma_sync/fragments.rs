//! Claims about fragments: what the reads put into registers is what the atom multiplies, from the definitions of the instructions.

use layout_core::atoms::MmaAtom;

use super::operand::{OperandMaps, Read, pairs};
use crate::gemm::{Obligation, PlanError, Refusal};

/// What `ldmatrix` puts into the registers is what the atom multiplies: lane by lane, byte by byte, from the definition of the
/// instruction (PTX ISA, `ldmatrix`).
pub(super) fn delivered(
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
        Read::LdmatrixPairs => return delivered_in_pairs(name, atom, o, is_a),
        Read::Elements => {
            return Ok(Obligation {
                name: name.to_owned(),
                evidence: format!("element by element at {own}"),
            });
        }
        // Columns, two at a time: `swapped` compares them with the fragment of the instruction.
        Read::Neighbours => return super::swapped::delivered(name, atom, o),
        Read::Vectors => return delivered_in_vectors(name, atom, o, is_a),
        Read::Descriptor => {
            return Ok(Obligation {
                name: name.to_owned(),
                evidence: "the prover holds each element of a descriptor against the layout"
                    .to_owned(),
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
fn delivered_in_pairs(
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

/// A load of 16 bytes begins at the first element that an FMA atom wants in a lane, and the others follow it along the side, in memory that is contiguous
/// there.
fn delivered_in_vectors(
    name: &str,
    atom: &MmaAtom,
    o: &OperandMaps,
    is_a: bool,
) -> Result<Obligation, Refusal> {
    let own = if is_a { atom.a } else { atom.b };
    let refuse = |reason: String| Refusal {
        obligation: name.to_owned(),
        reason,
    };
    let first = own.get(0).map_err(|e| refuse(e.to_string()))?;
    for lane in 0..32 {
        for value in 0..own.size() / 32 {
            let wanted = own.at(&[lane, value]);
            let delivered = first.index(lane) + value;
            if delivered != wanted {
                return Err(refuse(format!(
                    "lane {lane}, value {value} gets the element {delivered} of the side and wants {wanted}"
                )));
            }
            let byte = |at: i64| {
                let (row, col) = o.place(at, 0);
                o.shared.index(row + o.rows * col)
            };
            if byte(wanted) != byte(first.index(lane)) + value * o.bytes {
                return Err(refuse(format!(
                    "lane {lane}, value {value} is not {} bytes behind the first",
                    value * o.bytes
                )));
            }
        }
    }
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!("by 16 bytes at {first}; all 32 lanes compared with {own}"),
    })
}

/// An instruction of half the depth multiplies the two halves of a fragment: those registers hold what it wants.
pub(super) fn in_two_steps(whole: &MmaAtom, half: &MmaAtom) -> Result<Obligation, Refusal> {
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

/// Four warps one below the other have the sums of a warpgroup, each as atoms side by side: value by value.
pub(super) fn of_warpgroup(atom: &MmaAtom, n: i64) -> Result<Obligation, PlanError> {
    let name = format!(
        "the accumulators of wgmma m64n{n} lie in four warps as those of m{}n{} side by side",
        atom.m, atom.n
    );
    let whole = layout_core::atoms::wgmma_d(n)?;
    let each = atom.c.size() / 32;
    for thread in 0..128 {
        for value in 0..n / 2 {
            let (warp, lane) = (thread / 32, thread % 32);
            let place = atom.c.at(&[lane, value % each]);
            let (row, col) = (place % atom.m, place / atom.m + value / each * atom.n);
            let wanted = whole.at(&[thread, value]);
            if wanted != 16 * warp + row + 64 * col {
                return Err(PlanError::Refused(Refusal {
                    obligation: name,
                    reason: format!("thread {thread}, value {value} is at {wanted}"),
                }));
            }
        }
    }
    Ok(Obligation {
        name,
        evidence: format!("{whole} and {}, value by value", atom.c),
    })
}
