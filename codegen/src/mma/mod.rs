//! The portable tensor-core family: `mma.sync`, `ldmatrix`, `cp.async`.
//!
//! A plan is a type, a tile, a grid of warps and a number of stages; everything else follows. The shared layouts are derived from the
//! accesses ([`operand`]), the fragments come from the atom of the type, and the kernel strings them together:
//!
//! ```text
//! cp.async: global -> stage s+stages-1     (16 bytes at a time, zeros outside)
//! ldmatrix: stage s -> fragments           (the next k step while this one is multiplied)
//! mma.sync: fragments -> accumulators
//! ```
//!
//! Stages are unrolled, so that a stage is an immediate of the address, and a main loop of f16 at 3 stages or more has less than
//! 0.11 address instructions for each `ldmatrix`.

mod kernel;
pub mod operand;
mod staging;

use layout_core::Layout;
use layout_core::atoms::{self, MmaAtom};

use crate::plan::{
    Arch, Argument, DataType, Emitted, Gemm, Launch, NamedLayout, Obligation, Operands, Plan,
    PlanError, ProblemError, Proof, Refusal, Schedule, Trans, prove_bijection,
};
use crate::ptx::ParamKind;
use operand::{OperandMaps, Read};
use staging::Staging;

/// Bytes of one copy: always 16.
const COPY_BYTES: i64 = 16;

/// Blocks of one column of C that run one after another, so that they share tiles of B in the cache.
const GROUP: u64 = 8;

/// The largest size or leading dimension: the kernel compares signed 32-bit distances to the edge.
const LIMIT: u64 = (1 << 31) - (1 << 24);

/// One plan of the family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MmaPlan {
    /// Element type.
    pub data_type: DataType,
    /// Rows and columns of C that a block computes.
    pub tile: (i64, i64),
    /// Elements along k of one stage.
    pub depth: i64,
    /// Warps along the rows and the columns of the tile.
    pub warps: (i64, i64),
    /// Stages in shared memory.
    pub stages: i64,
    /// The first architecture of this plan: 80, 89 for 8-bit floats, 90 for the larger f64 atoms.
    pub arch: u32,
}

const fn plan(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    warps: (i64, i64),
    stages: i64,
    arch: u32,
) -> MmaPlan {
    MmaPlan {
        data_type,
        tile,
        depth,
        warps,
        stages,
        arch,
    }
}

/// The plans that are listed.
pub const PLANS: &[MmaPlan] = &[
    plan(DataType::F16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::F16, (256, 128), 64, (4, 2), 3, 80),
    plan(DataType::F16, (128, 128), 64, (2, 2), 3, 80),
    plan(DataType::F16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::F16, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::F16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::Bf16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::Bf16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::Tf32, (128, 256), 32, (2, 4), 3, 80),
    plan(DataType::Tf32, (128, 128), 32, (2, 2), 3, 80),
    plan(DataType::Tf32, (128, 128), 16, (2, 2), 4, 80),
    plan(DataType::Tf32, (64, 64), 16, (2, 2), 4, 80),
    plan(DataType::S8, (128, 128), 64, (2, 4), 4, 80),
    plan(DataType::S8, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::E4m3, (128, 128), 64, (2, 4), 4, 89),
    plan(DataType::E4m3, (64, 64), 64, (2, 2), 4, 89),
    plan(DataType::E5m2, (128, 128), 64, (2, 4), 4, 89),
    plan(DataType::E5m2, (64, 64), 64, (2, 2), 4, 89),
    plan(DataType::F64, (128, 128), 16, (2, 4), 3, 90),
    plan(DataType::F64, (64, 128), 16, (2, 4), 3, 90),
    plan(DataType::F64, (64, 64), 32, (2, 2), 3, 90),
    plan(DataType::F64, (64, 64), 16, (2, 2), 3, 80),
];

/// All maps of one kernel.
#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) atom: MmaAtom,
    pub(crate) a: OperandMaps,
    pub(crate) b: OperandMaps,
    pub(crate) staging: Staging,
}

impl MmaPlan {
    /// The atom that multiplies.
    fn atom(&self) -> MmaAtom {
        match self.data_type {
            DataType::F16 => atoms::MMA_M16N8K16_F16,
            DataType::F16Acc16 => atoms::MMA_M16N8K16_F16_F16,
            DataType::Bf16 => atoms::MMA_M16N8K16_BF16,
            DataType::Tf32 | DataType::F32 => atoms::MMA_M16N8K8_TF32,
            DataType::S8 => atoms::MMA_M16N8K32_S8,
            DataType::E4m3 => atoms::MMA_M16N8K32_E4M3,
            DataType::E5m2 => atoms::MMA_M16N8K32_E5M2,
            DataType::F64 if self.arch >= 90 => atoms::MMA_M16N8K8_F64,
            DataType::F64 => atoms::MMA_M8N8K4_F64,
        }
    }

    fn thread_count(&self) -> i64 {
        32 * self.warps.0 * self.warps.1
    }

    /// The maps for one choice of transposes.
    pub(crate) fn maps(&self, operands: Operands) -> Result<Maps, PlanError> {
        let atom = self.atom();
        let copy = (self.thread_count(), COPY_BYTES);
        let a = OperandMaps::new(
            &atom,
            true,
            operands.a == Trans::N,
            (self.tile.0, self.depth),
            copy,
        )?;
        let b = OperandMaps::new(
            &atom,
            false,
            operands.b == Trans::T,
            (self.tile.1, self.depth),
            copy,
        )?;
        let staging = Staging::new(
            &atom,
            self.tile.1 / self.warps.1,
            self.data_type.result().bytes().into(),
        )?;
        Ok(Maps {
            atom,
            a,
            b,
            staging,
        })
    }

    fn shared_bytes(&self, maps: &Maps) -> i64 {
        let stages = self.stages * (maps.a.stage_bytes() + maps.b.stage_bytes());
        let staging = maps.staging.bytes() * self.warps.0 * self.warps.1;
        stages.max(staging)
    }
}

impl Maps {
    /// Reads and copies of both operands, by the names of their tags.
    fn each(&self) -> [(&'static str, &'static str, &OperandMaps, bool); 2] {
        [
            ("copyA", "readA", &self.a, true),
            ("copyB", "readB", &self.b, false),
        ]
    }
}

/// (lane) → byte, from row-major element indices.
fn bytes_of(maps: &OperandMaps, elements: &[i64; 32]) -> [i64; 32] {
    elements.map(|e| maps.shared.at(&[e / maps.cols, e % maps.cols]))
}

impl Plan for MmaPlan {
    fn name(&self) -> String {
        let (m, n) = self.tile;
        format!("mma-{}-{m}x{n}x{}", self.data_type, self.depth)
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn min_arch(&self) -> Arch {
        Arch(self.arch)
    }

    fn tile(&self) -> (u32, u32, u32) {
        (self.tile.0 as u32, self.tile.1 as u32, self.depth as u32)
    }

    fn threads(&self) -> u32 {
        self.thread_count() as u32
    }

    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        let maps = self.maps(operands)?;
        let mut all = Vec::new();
        for (copy, read, o, _) in maps.each() {
            let (shared, points) = if copy == "copyA" {
                ("sharedA", "pointsA")
            } else {
                ("sharedB", "pointsB")
            };
            let what = if o.k_major { "(side, k)" } else { "(k, side)" };
            all.push(NamedLayout {
                name: shared,
                layout: o.derived.to_string(),
                meaning: format!("{what} -> element of the stage; {}", o.certificate),
            });
            all.push(NamedLayout {
                name: copy,
                layout: o.copy.to_string(),
                meaning: format!("(thread, value) -> column + {}*row of the tile", o.cols),
            });
            match o.read {
                Read::Ldmatrix { trans } => all.push(NamedLayout {
                    name: points,
                    layout: o.points.to_string(),
                    meaning: format!(
                        "lane -> side + {}*k that it points ldmatrix.x4{} at",
                        o.side,
                        if trans { ".trans" } else { "" }
                    ),
                }),
                Read::Elements => all.push(NamedLayout {
                    name: read,
                    layout: o.fragment.to_string(),
                    meaning: format!(
                        "(lane, value) -> side + {}*k of the element that it loads",
                        o.side
                    ),
                }),
            }
        }
        all.push(NamedLayout {
            name: "fragmentC",
            layout: maps.atom.c.to_string(),
            meaning: format!(
                "(lane, value) -> row + {}*column of {}",
                maps.atom.m, maps.atom.name
            ),
        });
        all.push(NamedLayout {
            name: "staging",
            layout: maps.staging.derived.to_string(),
            meaning: format!(
                "(row, column) of a warp's strip of C -> element; {}",
                maps.staging.certificate
            ),
        });
        Ok(all)
    }

    fn prove(&self, operands: Operands) -> Result<Proof, PlanError> {
        let maps = self.maps(operands)?;
        let mut proof = Proof::default();
        for (copy, read, o, is_a) in maps.each() {
            let n = o.rows * o.cols;
            proof.obligations.push(prove_bijection(
                &format!("{copy} brings every element of the tile exactly once"),
                &o.copy.into(),
                n,
            )?);
            proof.obligations.push(prove_bijection(
                &format!("the stage of {copy} keeps every element at its own place"),
                &o.derived,
                n,
            )?);
            proof.obligations.push(prove_fragment(
                &format!("{read} delivers the fragment of {}", maps.atom.name),
                &maps.atom,
                o,
                is_a,
            )?);
            proof.obligations.push(prove_vectors(copy, o)?);
            let write = o.write_pattern(COPY_BYTES);
            let pattern = o.read_pattern();
            for (name, p) in [(copy, write), (read, pattern)] {
                let lanes = bytes_of(o, &p.elements);
                proof
                    .accesses
                    .push(self.prove_lanes(name, p.access, o, &lanes)?);
            }
        }
        proof.obligations.push(prove_bijection(
            "each element of C has exactly one owner",
            &self.owners(&maps)?.into(),
            self.tile.0 * self.tile.1,
        )?);
        proof.obligations.extend(maps.staging.prove()?);
        proof.accesses.extend(maps.staging.accesses()?);
        Ok(proof)
    }

    fn emit(&self, operands: Operands, arch: Arch) -> Result<Emitted, PlanError> {
        if arch < self.min_arch() {
            return Err(PlanError::ArchTooOld {
                plan: self.name(),
                asked: arch,
                needs: self.min_arch(),
            });
        }
        let needs = self.shared_bytes(&self.maps(operands)?) as u32;
        if needs > arch.shared_limit() {
            return Err(PlanError::SharedMemory {
                plan: self.name(),
                needs,
                arch,
            });
        }
        let proof = self.prove(operands)?;
        kernel::emit(*self, operands, arch, proof)
    }

    fn adapt(&self, problem: &Gemm, _: Schedule) -> Result<Box<dyn Plan>, PlanError> {
        self.serves(problem)?;
        Ok(Box::new(*self))
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        problem.validate(LIMIT)?;
        if self.data_type == DataType::S8 {
            problem.integral()?;
        }
        self.serves(problem)?;
        if problem.m == 0 || problem.n == 0 {
            return Ok(None);
        }
        let (m, n) = (
            problem.m.div_ceil(self.tile.0 as u64),
            problem.n.div_ceil(self.tile.1 as u64),
        );
        let group = GROUP.min(m);
        if n > 65_535 || m.div_ceil(group) > 65_535 {
            return Err(ProblemError::TooLarge {
                name: "n",
                value: problem.n,
                limit: 65_535 * self.tile.1 as u64,
            }
            .into());
        }
        let maps = self.maps(problem.operands)?;
        let arguments = kernel::parameters(self.data_type)
            .into_iter()
            .filter_map(|(name, kind)| {
                Launch::gemm_argument(problem, name).map(|value| Argument {
                    name: name.to_owned(),
                    kind,
                    value,
                })
            })
            .collect();
        Ok(Some(Launch::single(
            kernel::entry_name(*self, problem.operands),
            [group as u32, n as u32, m.div_ceil(group) as u32],
            self.threads(),
            self.shared_bytes(&maps) as u32,
            arguments,
        )))
    }
}

impl MmaPlan {
    fn serves(&self, problem: &Gemm) -> Result<(), PlanError> {
        problem.placed(self.data_type)?;
        let widths = problem.widths(self.data_type);
        for (matrix, bytes) in ["A", "B"].into_iter().zip(widths) {
            if bytes < 16 {
                return Err(ProblemError::Unaligned {
                    matrix,
                    bytes,
                    copies: 16,
                }
                .into());
            }
        }
        Ok(())
    }
}

impl MmaPlan {
    /// (lane, warp rows, warp columns, values) → `row + M·column` of the tile of C.
    fn owners(&self, maps: &Maps) -> Result<Layout, PlanError> {
        let (m, n) = self.tile;
        let (wm, wn) = (m / self.warps.0, n / self.warps.1);
        let atom = &maps.atom;
        let place = Layout::flat(&[atom.m, atom.n], &[1, m])?;
        let c = layout_core::composition(&place, &atom.c)?;
        Ok(Layout::tuple(&[
            c.get(0)?,
            Layout::flat(&[self.warps.0, self.warps.1], &[wm, m * wn])?,
            c.get(1)?,
            Layout::flat(&[wm / atom.m, wn / atom.n], &[atom.m, m * atom.n])?,
        ])?)
    }

    /// The wavefronts of an access whose first execution has these byte offsets, for every other warp, row, k step and
    /// stage: they move all lanes by multiples of the tile's own strides, which the proof takes from the layout.
    fn prove_lanes(
        &self,
        name: &str,
        op: layout_core::banks::Access,
        o: &OperandMaps,
        lanes: &[i64; 32],
    ) -> Result<crate::plan::AccessProof, PlanError> {
        use layout_core::banks;
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
                o.write_pattern(COPY_BYTES).elements
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
        Ok(crate::plan::AccessProof {
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
            Read::Ldmatrix { .. } => 32 / o.bytes,
            Read::Elements => self.atom().k,
        };
        let (sides, ks) = if o.k_major {
            (o.rows, o.cols)
        } else {
            (o.cols, o.rows)
        };
        // Every value of a lane is at a distance of its own as well.
        let values: Vec<i64> = match o.read {
            Read::Ldmatrix { .. } => vec![0],
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
fn prove_fragment(
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
    let Read::Ldmatrix { trans } = o.read else {
        return Ok(Obligation {
            name: name.to_owned(),
            evidence: format!("element by element at {own}"),
        });
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

/// A copy's elements are neighbours in the stage and start at a multiple of its size.
fn prove_vectors(name: &str, o: &OperandMaps) -> Result<Obligation, Refusal> {
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

/// What α and β are.
fn scalar_kind(data_type: DataType) -> ParamKind {
    match data_type {
        DataType::S8 => ParamKind::S32,
        DataType::F64 => ParamKind::F64,
        _ => ParamKind::F32,
    }
}
