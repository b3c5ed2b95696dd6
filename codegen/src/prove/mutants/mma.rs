//! Mutants of the tensor-core plans, and of the kernels that pack operands and add partial sums.
//!
//! Operands are small integers, so that every sum is exact in every type.

use ptx_emulator::{
    Arg, GlobalMemory, Module, Options, TensorElement, TensorMap, TensorSwizzle, run,
};

use super::{Subject, judged};
use crate::Arch;
use crate::gemm::{
    Activation, ArgumentValue, Batch, Bias, Config, DataType, Epilogue, Gemm, Launch, MapSource,
    Operands, Order, Schedule, Scheduler, Specialized, TileSchedule, Trans,
};
use crate::ir::{Element, ParamKind};
use crate::tensor_map::MapArgument;

/// An integer as an element.
pub(super) fn encoded(x: i64, element: Element) -> Vec<u8> {
    match element {
        Element::F16 => (float(x, 5, 10) as u16).to_le_bytes().to_vec(),
        Element::E4m3 => vec![float(x, 4, 3) as u8],
        Element::F32 => (x as f32).to_le_bytes().to_vec(),
        Element::F64 => (x as f64).to_le_bytes().to_vec(),
        Element::S8 => vec![x as u8],
        _ => (x as i32).to_le_bytes().to_vec(),
    }
}

/// The bits of an integer as a float of this many bits of exponent and fraction.
fn float(x: i64, exponent: u32, fraction: u32) -> u32 {
    let sign = u32::from(x < 0) << (exponent + fraction);
    let bias = (1 << (exponent - 1)) - 1;
    match x.unsigned_abs() {
        0 => sign,
        a => {
            let e = a.ilog2();
            let rest = (a << fraction >> e) as u32 & ((1 << fraction) - 1);
            sign | (e + bias) << fraction | rest
        }
    }
}

/// A matrix of numbers from -3 to 3.
fn numbers(n: u64, seed: u32) -> Vec<i64> {
    let mut x = seed;
    let next = |_| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        i64::from(x >> 16) % 7 - 3
    };
    (0..n).map(next).collect()
}

/// A plan for one kind of problem.
pub(super) struct Case {
    plan: &'static str,
    operands: Operands,
    schedule: Schedule,
    batch: u64,
    epilogue: Epilogue,
    /// m, n, k, and what leading dimensions have beyond their rows.
    sizes: &'static [[u64; 4]],
    /// The kernel that is mutated, by the end of its name; the product's if empty.
    kernel: &'static str,
    /// Rows and columns of persistent blocks; or blocks of a linear schedule of tiles, two below each other and so many side by side.
    blocks: Option<(u32, u32)>,
}

impl Case {
    /// A product by a plan as it is listed.
    pub(super) fn plain(
        plan: &'static str,
        operands: Operands,
        sizes: &'static [[u64; 4]],
    ) -> Self {
        Self {
            plan,
            operands,
            schedule: PLAIN,
            batch: 1,
            epilogue: NO_EPILOGUE,
            sizes,
            kernel: "",
            blocks: None,
        }
    }

    fn problem(&self, [m, n, k, more]: [u64; 4], alpha: f64, beta: f64) -> Gemm {
        let mut p = Gemm::packed(m, n, k, self.operands);
        (p.lda, p.ldb, p.ldc) = (p.lda + more, p.ldb + more, p.ldc + more);
        (p.alpha, p.beta) = (alpha, beta);
        p.epilogue = self.epilogue;
        if self.batch > 1 {
            let rows = [p.stored_a().0, p.stored_b().0, m];
            let strides = [
                p.lda * rows[0] + more,
                p.ldb * rows[1],
                p.ldc * rows[2] + more,
            ];
            p.batch = Batch {
                count: self.batch,
                strides,
            };
        }
        p
    }

    pub(super) fn subject(&self) -> Subject {
        let config: Config = self.plan.parse().expect("a plan");
        let own: Specialized = match self.blocks {
            Some((rows, columns)) => {
                let tiles = if config.scheduler == Scheduler::Persistent(Order::Linear) {
                    TileSchedule::Linear {
                        blocks: rows,
                        tiles: [2, columns],
                    }
                } else {
                    TileSchedule::Rectangle([rows, columns])
                };
                config.kernel().with_tiles(tiles).expect("whole clusters")
            }
            None => config
                .specialize(&self.problem(self.sizes[0], 1.0, 0.0), self.schedule)
                .expect("it serves"),
        };
        let arch = Arch(own.min_arch().0.max(80));
        let mut entries = own.entries(self.operands, arch).expect("it is built");
        let main = own.entry_name(self.operands);
        let wanted = format!("{main}{}", self.kernel);
        let at = entries.iter().position(|e| e.name == wanted);
        let entry = entries.remove(at.expect("the kernel"));
        let mut launches = Vec::new();
        for (i, &size) in self.sizes.iter().enumerate() {
            let (alpha, beta) = [(1.0, 0.0), (2.0, 1.0), (1.0, -1.0), (0.0, 2.0)][i % 4];
            let problem = self.problem(size, alpha, beta);
            let launch = own.launch(&problem).expect("it serves").expect("not empty");
            launches.push((problem, launch));
        }
        let data_type = own.data_type;
        let name = format!("{} {} {}", self.plan, self.operands, entry.name);
        Subject {
            name,
            entry,
            others: entries,
            judge: Box::new(move |text| judge(text, data_type, &launches)),
        }
    }
}

/// Runs the text on every problem: clean, right, and nothing but C written.
fn judge(text: &str, data_type: DataType, launches: &[(Gemm, Launch)]) -> Option<String> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(e) => return Some(e.to_string()),
    };
    launches
        .iter()
        .find_map(|(problem, launch)| wrong(&module, data_type, problem, launch))
}

fn wrong(module: &Module, data_type: DataType, p: &Gemm, launch: &Launch) -> Option<String> {
    let what = format!("{}x{}x{}", p.m, p.n, p.k);
    let (operand, result) = (data_type.operand(), p.result(data_type));
    let matrix = |rows: u64, cols: u64, ld: u64, stride: u64| {
        (p.batch.count - 1) * stride + (rows - 1) * ld + cols
    };
    let strides = p.batch.strides;
    let ((ar, ac), (br, bc)) = (p.stored_a(), p.stored_b());
    let a = numbers(matrix(ar, ac, p.lda, strides[0]), 1);
    let b = numbers(matrix(br, bc, p.ldb, strides[1]), 2);
    let c = numbers(matrix(p.m, p.n, p.ldc, strides[2]), 3);
    let bias = numbers(p.m.max(p.n), 4);
    let mut memory = GlobalMemory::new();
    let mut place = |all: &[i64], element: Element| {
        let bytes: Vec<u8> = all.iter().flat_map(|&x| encoded(x, element)).collect();
        let at = memory.alloc(bytes.len() as u64, 256).expect("memory");
        memory.write(at, &bytes).expect("allocated");
        at
    };
    let at = [place(&a, operand), place(&b, operand), place(&c, result)];
    // As many elements as C has rows or columns, and none more.
    let length = if p.epilogue.bias == Bias::Row {
        p.m
    } else {
        p.n
    };
    let bias_at = place(&bias[..length as usize], result);
    let workspace = memory
        .alloc(launch.workspace_bytes.max(1), 256)
        .expect("memory");
    for l in launch.sequence() {
        let args = l.arguments.iter().map(|a| match (a.value, a.kind) {
            (ArgumentValue::A, _) => Arg::Ptr(at[0]),
            (ArgumentValue::B, _) => Arg::Ptr(at[1]),
            (ArgumentValue::C, _) => Arg::Ptr(at[2]),
            (ArgumentValue::Bias, _) => Arg::Ptr(bias_at),
            (ArgumentValue::Workspace(offset), _) => Arg::Ptr(workspace + offset),
            (ArgumentValue::TensorMap(of, map), _) => tensor_map(of, &map, at, workspace),
            (ArgumentValue::Int(v), _) => Arg::U32(v as u32),
            (ArgumentValue::Given, _) => unreachable!("no epilogue of one's own"),
            (ArgumentValue::Float(v), ParamKind::F64) => Arg::F64(v),
            (ArgumentValue::Float(v), ParamKind::S32) => Arg::U32(v as i32 as u32),
            (ArgumentValue::Float(v), _) => Arg::F32(v as f32),
        });
        let own = ptx_emulator::Launch {
            grid: l.grid,
            block: l.block,
            cluster: l.cluster,
            dynamic_shared: l.shared_bytes,
            args: args.collect(),
            ..ptx_emulator::Launch::default()
        };
        let options = Options {
            step_limit: 1 << 17,
            global_races: true,
            lane_races: true,
            ..Options::default()
        };
        let report = match run(module, &l.kernel, &own, &mut memory, &options) {
            Ok(report) => report,
            Err(e) => return Some(format!("{what}: {e}")),
        };
        if let Some(finding) = report.findings.first() {
            return Some(format!("{what}: {finding:?}"));
        }
    }
    let size = u64::from(result.bytes());
    let out = memory
        .read(at[2], size as usize * c.len())
        .expect("allocated");
    let of = |all: &[i64], t: Trans, first: u64, ld: u64, i: u64, j: u64| {
        let (r, c) = if t == Trans::N { (i, j) } else { (j, i) };
        all[(first + r * ld + c) as usize]
    };
    let mut wanted = c.clone();
    for layer in 0..p.batch.count {
        let first = strides.map(|s| s * layer);
        for i in 0..p.m {
            for j in 0..p.n {
                let product = |k| {
                    of(&a, p.operands.a, first[0], p.lda, i, k)
                        * of(&b, p.operands.b, first[1], p.ldb, k, j)
                };
                let sum: i64 = (0..p.k).map(product).sum();
                let old = &mut wanted[(first[2] + i * p.ldc + j) as usize];
                let added = match p.epilogue.bias {
                    Bias::None => 0,
                    Bias::Row => bias[i as usize],
                    Bias::Column => bias[j as usize],
                };
                let value = p.alpha as i64 * sum + p.beta as i64 * *old + added;
                *old = if p.epilogue.activation == Activation::Relu {
                    value.max(0)
                } else {
                    value
                };
            }
        }
    }
    for (i, (got, x)) in out.chunks(size as usize).zip(&wanted).enumerate() {
        // Minus zero is zero.
        let minus_zero =
            *x == 0 && got[..got.len() - 1].iter().all(|&b| b == 0) && got.last() == Some(&0x80);
        if got != encoded(*x, result) && !minus_zero {
            return Some(format!("{what}: element {i} of C is {got:?} and not {x}"));
        }
    }
    None
}

/// A tensor map as the emulator takes it.
fn tensor_map(of: MapSource, map: &MapArgument, at: [u64; 3], workspace: u64) -> Arg {
    let address = match of {
        MapSource::A => at[0],
        MapSource::B => at[1],
        MapSource::Workspace(offset) => workspace + offset,
        MapSource::Given => unreachable!("no epilogue of one's own"),
    };
    let element = match map.element.bytes() {
        1 => TensorElement::U8,
        2 => TensorElement::U16,
        _ => TensorElement::U32,
    };
    let mut own = TensorMap::new(element, address);
    (own.sizes, own.strides) = (map.sizes(), map.strides_bytes());
    own.box_sizes = map.box_sizes();
    own.swizzle = match map.swizzle_bytes {
        32 => TensorSwizzle::Bytes32,
        64 => TensorSwizzle::Bytes64,
        _ => TensorSwizzle::Bytes128,
    };
    Arg::Bytes(own.encode().expect("a map").to_vec())
}

const PLAIN: Schedule = Schedule {
    split: 1,
    pack: false,
};

const NO_EPILOGUE: Epilogue = Epilogue {
    bias: Bias::None,
    activation: Activation::Identity,
};

#[test]
fn mutants_of_mma() {
    let [nn, nt, tn, tt] = Operands::ALL;
    let plain = Case::plain;
    let split = Schedule {
        split: 2,
        pack: false,
    };
    let packed = Schedule {
        split: 1,
        pack: true,
    };
    let cases = [
        plain(
            "mma-f16-64x64x32",
            nn,
            &[
                [64, 64, 160, 8],
                [136, 72, 40, 0],
                [8, 24, 8, 8],
                [72, 8, 64, 0],
            ],
        ),
        Case {
            epilogue: Epilogue {
                bias: Bias::Column,
                activation: Activation::Relu,
            },
            ..plain("mma-f64-64x64x16", tn, &[[67, 65, 33, 1], [64, 128, 16, 2]])
        },
        Case {
            batch: 2,
            ..plain(
                "mma-f16-64x64x32+sm75",
                nt,
                &[[66, 70, 36, 2], [64, 64, 96, 2]],
            )
        },
        Case {
            schedule: split,
            epilogue: Epilogue {
                bias: Bias::Row,
                activation: Activation::Identity,
            },
            ..plain(
                "mma-f16-64x64x32",
                tt,
                &[[64, 72, 160, 0], [136, 64, 72, 0]],
            )
        },
        Case {
            schedule: split,
            epilogue: Epilogue {
                bias: Bias::Column,
                activation: Activation::Relu,
            },
            kernel: "_reduce",
            ..plain(
                "mma-f16-64x64x64",
                nn,
                &[[16, 48, 160, 0], [3, 528, 128, 0]],
            )
        },
        Case {
            schedule: packed,
            kernel: "_pack_b",
            ..plain("mma-f16-64x64x32", nn, &[[8, 67, 9, 0], [8, 2051, 2, 0]])
        },
        Case {
            schedule: packed,
            ..plain("mma-f16-64x64x32", nn, &[[65, 67, 71, 0], [70, 129, 33, 0]])
        },
        plain("mma-f16-64x64x32", tn, &[[65, 66, 67, 1], [70, 8, 129, 0]]),
        // Both operands as fused multiply-adds have them: one through registers, transposed, and one as it lies.
        plain("sgemm-64x64x16", nn, &[[64, 64, 112, 4], [72, 68, 20, 0]]),
    ];
    let mut all = 0;
    for case in &cases {
        let (made, refuted) = judged(&case.subject(), 5);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= 600, "{all} mutants");
}

/// Roles, TMA and products of warpgroups: both ways that an operand can lie, more tiles than stages, parts of the sums.
#[test]
fn mutants_of_warpgroups() {
    let [nn, nt, tn, tt] = Operands::ALL;
    let split = Schedule {
        split: 2,
        pack: false,
    };
    let cases = [
        // The second size reads C, which the other way to store it does.
        Case::plain(
            "wgmma-f16-128x128x64",
            nn,
            &[[72, 136, 328, 8], [72, 136, 72, 8]],
        ),
        Case {
            schedule: split,
            ..Case::plain("wgmma-f16-128x128x64", tt, &[[72, 40, 648, 0]])
        },
        // Side by side and one below the other, both ragged.
        Case {
            blocks: Some((1, 2)),
            ..Case::plain(
                "wgmma-f16-128x256x64+persistent",
                nn,
                &[[136, 520, 72, 0], [128, 256, 72, 8]],
            )
        },
        // Sums of stages, added to sums of their own.
        Case::plain("wgmma-e4m3-128x128x128+promoted", nt, &[[72, 136, 656, 0]]),
        // Cᵀ, of which a factor goes through registers.
        Case::plain(
            "wgmma-tf32-256x128x32+swapab",
            nn,
            &[[72, 136, 168, 8], [72, 136, 40, 0]],
        ),
        // Cᵀ by descriptors, of which that of A has a swizzle of 32 bytes; C is not read, as that is a matter of β, of which the prover knows nothing.
        Case::plain(
            "wgmma-f16-16x64x128+swapab+stages4",
            tn,
            &[[24, 136, 656, 8]],
        ),
        // Blocks that share B: two tiles below each other of which one is outside of C, more tiles than stages.
        Case::plain(
            "wgmma-f16-128x128x64+cluster2x1",
            nn,
            &[[72, 136, 328, 8], [136, 72, 72, 8]],
        ),
        // Those that share A, and take tile after tile.
        Case {
            blocks: Some((1, 2)),
            ..Case::plain(
                "wgmma-f16-128x256x64+persistent+cluster1x2",
                nt,
                &[[136, 520, 72, 0], [128, 256, 72, 8]],
            )
        },
        // The same with a linear schedule.
        Case {
            blocks: Some((2, 3)),
            ..Case::plain(
                "wgmma-e4m3-256x144x128+pingpong+linear",
                nt,
                &[[264, 296, 144, 0], [72, 432, 400, 16]],
            )
        },
        // Two warpgroups in a ping-pong schedule; the second has no row of C at the second size, which reads it.
        Case {
            blocks: Some((1, 2)),
            ..Case::plain(
                "wgmma-f16-256x128x64+pingpong",
                nt,
                &[[264, 136, 200, 0], [72, 136, 456, 8]],
            )
        },
        // The transpose that comes first.
        Case {
            kernel: "_transpose_b",
            ..Case::plain("wgmma-tf32-64x128x32", nn, &[[64, 100, 72, 0]])
        },
    ];
    let mut all = 0;
    for case in &cases {
        let (made, refuted) = judged(&case.subject(), 4);
        assert!(refuted.is_empty(), "{refuted:#?}");
        all += made;
    }
    assert!(all >= 300, "{all}");
}
