//! No address is written by hand: a reader of the emitted text, who knows nothing of the emitter, finds that every memory operand
//! stands on a register that the index compiler made, and that all of what such a register is computed from is integer
//! arithmetic on indices, sizes and base addresses.
//!
//! This holds for every entry of every module: the products of all plans, the variants of the `mma.sync` plans, and the kernels that
//! pack operands before a product or add parts of its sums after it.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::mma::{TYPES, plans_of};
use common::ptx::{Instruction, definitions, entries, origins};
use tilewright::codegen::Arch;
use tilewright::kernels::gemm::{
    Alignment, Batch, Bias, Config, DataType, Emitted, Epilogue, Gemm, Operands, Schedule,
    Specialized,
};

/// A module, and what it is.
type Module = (String, Emitted);

fn emitted(what: &str, plan: &Specialized, operands: Operands, arch: Arch) -> Module {
    let kernel = plan.emit(operands, arch);
    let kernel = kernel.unwrap_or_else(|e| panic!("{}, {operands}, {what}: {e}", plan.name()));
    (format!("{}, {operands}, {what}", plan.name()), kernel)
}

/// Every listed plan, as it is.
fn listed() -> impl Iterator<Item = Module> {
    Config::table().map(Config::kernel).flat_map(|plan| {
        Operands::ALL
            .into_iter()
            .map(move |operands| emitted("as listed", &plan, operands, plan.min_arch()))
            .collect::<Vec<_>>()
    })
}

/// What a plan is adapted to, beside operands that are aligned.
fn wishes(data_type: DataType) -> Vec<(String, Gemm, Schedule)> {
    let plain = Schedule::default();
    let split = Schedule { split: 4, ..plain };
    let aligned = Gemm::packed(208, 208, 1040, Operands::ALL[0]);
    let bias = |bias| Gemm {
        epilogue: Epilogue {
            bias,
            ..aligned.epilogue
        },
        ..aligned
    };
    let placed = |bytes: u32| Gemm {
        alignment: Alignment {
            a: bytes,
            b: bytes,
            c: bytes.max(aligned.result(data_type).bytes()),
        },
        ..aligned
    };
    let batch = Gemm {
        batch: Batch {
            count: 3,
            strides: [208 * 1040, 208 * 1040, 208 * 208],
        },
        ..aligned
    };
    let mut all = vec![
        ("bias by row".to_owned(), bias(Bias::Row), plain),
        ("bias by column".to_owned(), bias(Bias::Column), plain),
        ("a batch".to_owned(), batch, plain),
        ("split".to_owned(), aligned, split),
    ];
    for bytes in [8, 4, 2, 1].into_iter().filter(|&b| b >= data_type.bytes()) {
        let pack = Schedule {
            pack: true,
            ..split
        };
        all.push((format!("aligned to {bytes}"), placed(bytes), plain));
        all.push((format!("packed from {bytes}, split"), placed(bytes), pack));
    }
    all
}

/// The smallest plan of each type, for `sm_75` too, and a large one, adapted to what it can be.
fn variants() -> impl Iterator<Item = Module> {
    TYPES.into_iter().flat_map(|data_type| {
        let mut plans = plans_of(data_type);
        plans.sort_by_key(|plan| {
            let [m, n, k] = plan.tile();
            m * n * k
        });
        let mut all = Vec::new();
        for (i, plan) in plans.iter().enumerate() {
            let smallest = i == 0 || (i == 1 && plan.tile() == plans[0].tile());
            if !smallest && i + 1 < plans.len() {
                continue;
            }
            for operands in Operands::ALL {
                for (what, problem, schedule) in wishes(data_type) {
                    // Square enough that every transpose has the same leading dimensions.
                    let problem = Gemm {
                        lda: 1040,
                        ldb: 1040,
                        operands,
                        ..problem
                    };
                    match plan.specialize(&problem, schedule) {
                        Ok(plan) => {
                            all.push(emitted(&what, &plan, operands, plan.min_arch()));
                        }
                        // Large tiles have no narrow copies.
                        Err(refusal) => assert!(!smallest && refusal.code() == "unsupported"),
                    }
                }
            }
        }
        all
    })
}

/// Instructions that touch memory and are expected in some kernel.
const KINDS: [&str; 9] = [
    "mbarrier.",
    "cp.async.bulk.tensor.",
    "ld.global",
    "st.global",
    "ld.shared",
    "st.shared",
    "ldmatrix.",
    "cp.async.cg.",
    "cp.async.ca.",
];

fn assert_compiled(modules: impl Iterator<Item = Module>, expected: &[&str]) {
    let (mut kinds, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for (what, kernel) in modules {
        let all = entries(&kernel.ptx);
        assert_eq!(all.len(), kernel.address_registers.len(), "{what}");
        for entry in &all {
            let made = &kernel.address_registers[entry.name];
            let made: BTreeSet<&str> = made.iter().map(String::as_str).collect();
            let mut used = BTreeSet::new();
            let of_map = |i: &&Instruction| i.opcode == "cvta.param.u64";
            let maps = entry.code.iter().filter(of_map);
            let maps: BTreeSet<&str> = maps.flat_map(|i| i.written().iter().copied()).collect();
            // The same address in another block of the cluster.
            let mapped = entry.code.iter().filter(|i| i.opcode.starts_with("mapa."));
            let mapped: BTreeMap<&str, &str> = mapped
                .filter_map(|i| Some((*i.written().first()?, i.read().next()?)))
                .collect();
            for instruction in &entry.code {
                let addresses = instruction.addresses();
                let brackets = instruction.operands.iter().flatten();
                let brackets = brackets.filter(|o| o.contains(['[', ']'])).count();
                assert_eq!(
                    (addresses.len(), brackets),
                    [instruction.expected_addresses(); 2].into(),
                    "{what}: {instruction:?}"
                );
                for (base, _) in addresses {
                    if maps.contains(base) {
                        continue;
                    }
                    if instruction.opcode.starts_with("ld.param") {
                        assert!(entry.parameters.iter().any(|&(name, _)| name == base));
                        continue;
                    }
                    let kind = KINDS.iter().find(|k| instruction.opcode.starts_with(**k));
                    let kind = kind.unwrap_or_else(|| panic!("{what}: {instruction:?}"));
                    kinds.insert(*kind);
                    let base = mapped.get(base).copied().unwrap_or(base);
                    assert!(
                        made.contains(base),
                        "{what}: {base} of {instruction:?} is not from the index compiler"
                    );
                    used.insert(base);
                }
            }
            assert_eq!(used, made, "{what}: registers made but not used");
            let end = ["_pack_a", "_pack_b", "_reduce"];
            ends.extend(end.into_iter().filter(|end| entry.name.ends_with(end)));
        }
    }
    kinds.extend(ends);
    assert_eq!(kinds, expected.iter().copied().collect::<BTreeSet<_>>());
}

#[test]
fn every_memory_operand_stands_on_a_register_of_the_index_compiler() {
    let expected = ["ld.global", "st.global", "ld.shared", "st.shared"];
    let expected = [&expected[..], &["ldmatrix.", "cp.async.cg."], &KINDS[..2]].concat();
    assert_compiled(listed(), &expected);
}

#[test]
fn every_memory_operand_of_a_variant_does_so_too() {
    // Those of Hopper are in the listed plans.
    let expected = [&KINDS[2..], &["_pack_a", "_pack_b", "_reduce"]].concat();
    assert_compiled(variants(), &expected);
}

/// What the index compiler writes, and the moves and choices that carry its values.
const ARITHMETIC: [&str; 16] = [
    "add.s",
    "sub.s",
    "mul.lo.s",
    // Quotients by numbers that are no powers of two: slots of six stages.
    "mul.hi.u32",
    "mul.hi.u64",
    "mul.wide.u32",
    "mad.lo.s",
    "mad.wide.u32",
    "shl.b",
    "shr.u",
    "and.b",
    "xor.b",
    "cvt.u64.u32",
    "cvt.u32.u64",
    "selp.b",
    "mov.u",
];

/// Where values come from.
const LEAVES: [&str; 3] = ["ld.param.u64", "ld.param.u32", "cvta.to.global.u64"];

fn assert_arithmetic(modules: impl Iterator<Item = Module>) {
    for (what, kernel) in modules {
        for entry in entries(&kernel.ptx) {
            let definitions = definitions(&entry.code);
            let made = kernel.address_registers[entry.name].iter();
            let (registers, leaves) = origins(&definitions, made.map(String::as_str));
            for register in registers {
                let by = definitions.get(register);
                for instruction in by.unwrap_or_else(|| panic!("{what}: who writes {register}?")) {
                    let mut known = ARITHMETIC.iter().chain(&LEAVES);
                    assert!(
                        known.any(|p| instruction.opcode.starts_with(p)),
                        "{what}: {register} is made by {instruction:?}"
                    );
                }
            }
            // Every pointer is the base of some address, and nothing but indices and sizes is added to them.
            for &(name, ty) in &entry.parameters {
                let is_leaf = leaves.contains(format!("[{name}]").as_str());
                assert!(is_leaf || ty != "u64", "{what}: {name} is not used");
                assert!(!is_leaf || ty == "u64" || ty == "u32", "{what}: {name}");
            }
            let indices = ["%tid.x", "%ctaid.x", "%ctaid.y", "%ctaid.z", "smem"];
            for leaf in leaves {
                assert!(
                    leaf.starts_with('[') || indices.contains(&leaf),
                    "{what}: {leaf} in an address"
                );
            }
        }
    }
}

#[test]
fn addresses_are_integer_arithmetic_on_indices_sizes_and_bases() {
    assert_arithmetic(listed());
}

#[test]
fn so_are_the_addresses_of_variants() {
    assert_arithmetic(variants());
}

/// The text literals of a Rust file; comments are left out.
fn literals(source: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let found = &rest[at..];
        if found.starts_with("//") {
            rest = found.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(after) = found.strip_prefix("'\"'") {
            rest = after;
        } else if found.starts_with('"') {
            let mut end = 1;
            while !found[end..].starts_with('"') {
                end += if found[end..].starts_with('\\') { 2 } else { 1 };
                while !found.is_char_boundary(end) {
                    end += 1;
                }
            }
            all.push(found[1..end].to_owned());
            rest = &found[end + 1..];
        } else {
            rest = &found[1..];
        }
    }
    all
}

/// All Rust files below a folder.
fn sources(folder: &std::path::Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a text");
            all.push((path.display().to_string(), text));
        }
    }
    all
}

/// The families write no memory operand and no memory instruction: both come from views, and text from the printer.
#[test]
fn the_emitter_spells_no_memory_instruction() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/src");
    for family in ["gemm", "gemm/mma_sync", "sources/maxas", "sources/outer"] {
        let files = sources(&root.join(family));
        assert!(files.len() >= 3, "{family}: {}", files.len());
        for (path, source) in files {
            for text in literals(&source) {
                // A bracket or a register's name in a text.
                for spelled in ["[", "]", "%r", "%f", "%h"] {
                    let special = text == "%tid.x";
                    assert!(
                        special || !text.contains(spelled),
                        "{path}: {text:?} is an operand written by hand"
                    );
                }
                let opcode = text.split([' ', '{']).next().unwrap_or_default();
                let memory = [
                    "ld.",
                    "st.",
                    "atom.",
                    "red.",
                    "prefetch",
                    "cp.",
                    "ldmatrix.",
                ];
                let by_hand = memory.iter().any(|p| opcode.starts_with(p));
                let inside = text.contains(" ld.") || text.contains(" st.");
                assert!(!by_hand && !inside, "{path}: {text:?}");
            }
        }
    }
}
