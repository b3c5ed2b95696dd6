//! No address is written by hand: a reader of the emitted text, who knows nothing of the emitter, finds that every memory operand
//! stands on a register that the index compiler made, and that all of what such a register is computed from is integer
//! arithmetic on indices, sizes and base addresses.

use std::collections::{BTreeMap, BTreeSet};

use tilewright::codegen::plan::{Arch, Emitted, Operands, Plan};
use tilewright::codegen::sgemm::SgemmPlan;

/// One instruction: its opcode and the operands as they are written, guard and comment removed.
#[derive(Debug)]
struct Instruction<'a> {
    opcode: &'a str,
    operands: Vec<&'a str>,
}

/// The instructions of the kernel's body, one a line.
fn instructions(ptx: &str) -> Vec<Instruction<'_>> {
    let body = ptx.split_once("\n{\n").expect("a body").1;
    let code = body.lines().map(|line| {
        let code = line.split("//").next().unwrap_or_default().trim();
        code.strip_prefix('@')
            .and_then(|guarded| guarded.split_once(' '))
            .map_or(code, |(_, code)| code)
    });
    code.filter(|code| code.ends_with(';') && !code.starts_with('.'))
        .map(|code| {
            let code = code.trim_end_matches(';');
            let (opcode, operands) = code.split_once(' ').unwrap_or((code, ""));
            let operands = operands.split([',', '{', '}']).map(str::trim);
            Instruction {
                opcode,
                operands: operands.filter(|operand| !operand.is_empty()).collect(),
            }
        })
        .collect()
}

/// The base register and the offset of an operand in brackets.
fn memory_operand(operand: &str) -> Option<(&str, i64)> {
    let inside = operand.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
    Some((base, offset.parse().expect("an offset is a number")))
}

fn kernels() -> impl Iterator<Item = (SgemmPlan, Operands, Emitted)> {
    SgemmPlan::ALL.into_iter().flat_map(|plan| {
        Operands::ALL.into_iter().map(move |operands| {
            let kernel = plan.emit(operands, Arch(80)).expect("the plan proves");
            (plan, operands, kernel)
        })
    })
}

#[test]
fn every_memory_operand_stands_on_a_register_of_the_index_compiler() {
    for (plan, operands, kernel) in kernels() {
        let made: BTreeSet<&str> = kernel.address_registers[&kernel.kernel]
            .iter()
            .map(String::as_str)
            .collect();
        let mut used = BTreeSet::new();
        let mut accesses = [0; 4];
        for instruction in instructions(&kernel.ptx) {
            let kinds = ["ld.global", "st.global", "ld.shared", "st.shared"];
            let kind = kinds
                .iter()
                .position(|kind| instruction.opcode.starts_with(kind));
            for operand in &instruction.operands {
                let Some((base, _)) = memory_operand(operand) else {
                    assert!(!operand.contains('['), "{operand} is not understood");
                    continue;
                };
                if instruction.opcode.starts_with("ld.param") {
                    assert!(!base.starts_with('%'), "{instruction:?}");
                    continue;
                }
                let kind = kind.unwrap_or_else(|| panic!("{instruction:?} touches memory"));
                accesses[kind] += 1;
                assert!(
                    made.contains(base),
                    "{plan}, {operands}: {base} of {instruction:?} is not from the index compiler"
                );
                used.insert(base);
            }
            let touches = ["ld.", "st.", "atom", "red.", "cp.", "prefetch", "ldmatrix"];
            if touches
                .iter()
                .any(|prefix| instruction.opcode.starts_with(prefix))
            {
                let operands = instruction.operands.iter();
                let brackets = operands.filter(|o| memory_operand(o).is_some()).count();
                assert_eq!(brackets, 1, "{instruction:?}");
            }
        }
        assert!(accesses.iter().all(|&n| n > 0), "{plan}: {accesses:?}");
        assert_eq!(
            used, made,
            "{plan}, {operands}: registers made but not used"
        );
    }
}

/// The registers that the instructions with destination `register` read.
fn definitions<'a>(code: &'a [Instruction<'a>]) -> BTreeMap<&'a str, Vec<&'a Instruction<'a>>> {
    let mut all: BTreeMap<&str, Vec<&Instruction>> = BTreeMap::new();
    for instruction in code {
        let is_load = instruction.opcode.starts_with("ld.");
        let writes = match (is_load, instruction.opcode) {
            (_, opcode)
                if ["st.", "bra", "bar.", "ret"]
                    .iter()
                    .any(|p| opcode.starts_with(p)) =>
            {
                0
            }
            // A vector's registers, up to the memory operand.
            (true, _) => instruction.operands.len() - 1,
            _ => 1,
        };
        for register in &instruction.operands[..writes] {
            all.entry(register).or_default().push(instruction);
        }
    }
    all
}

#[test]
fn addresses_are_integer_arithmetic_on_indices_sizes_and_bases() {
    // What the index compiler writes, and the moves and choices that carry its values.
    let arithmetic = [
        "add.s",
        "sub.s",
        "mul.lo.s",
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
    let leaves = ["ld.param.u64", "ld.param.u32", "cvta.to.global.u64"];
    for (plan, operands, kernel) in kernels() {
        let code = instructions(&kernel.ptx);
        let definitions = definitions(&code);
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = kernel.address_registers[&kernel.kernel]
            .iter()
            .map(String::as_str)
            .collect();
        let mut bases = BTreeSet::new();
        while let Some(register) = open.pop() {
            if !seen.insert(register) {
                continue;
            }
            let by = definitions.get(register);
            for instruction in by.unwrap_or_else(|| panic!("{plan}: nothing writes {register}")) {
                let opcode = instruction.opcode;
                let known = arithmetic
                    .iter()
                    .chain(&leaves)
                    .any(|p| opcode.starts_with(p));
                assert!(
                    known,
                    "{plan}, {operands}: {register} is made by {instruction:?}"
                );
                for operand in &instruction.operands[1..] {
                    match operand.strip_prefix('%') {
                        // A predicate chooses; it is no part of the value.
                        Some(rest) if rest.starts_with('p') => {}
                        Some(rest) if rest.starts_with("tid.") || rest.starts_with("ctaid.") => {
                            bases.insert(*operand);
                        }
                        Some(_) => open.push(operand),
                        None if operand.parse::<i64>().is_ok() => {}
                        None => {
                            bases.insert(*operand);
                        }
                    }
                }
            }
        }
        let expected = [
            "%ctaid.x", "%ctaid.y", "%ctaid.z", "%tid.x", "[A]", "[B]", "[C]", "[lda]", "[ldb]",
            "[ldc]", "smem",
        ];
        assert_eq!(bases, BTreeSet::from(expected), "{plan}, {operands}");
    }
}

/// The emitter of the kernel spells no memory instruction itself: those come from `Kernel::load` and `Kernel::store`, which take an
/// `Address`, which only the index compiler makes.
#[test]
fn the_emitter_spells_no_memory_instruction() {
    let emitter = [
        include_str!("../codegen/src/sgemm/kernel.rs"),
        include_str!("../codegen/src/sgemm/kernel/load.rs"),
        include_str!("../codegen/src/sgemm/kernel/epilogue.rs"),
    ];
    for spelled in ["\"ld.", "\"st.", " ld.", " st.", "[%", "[{"] {
        let mut lines = emitter.iter().flat_map(|file| file.lines());
        let found = lines.find(|line| line.contains(spelled));
        assert_eq!(found, None, "an instruction or an operand written by hand");
    }
}
