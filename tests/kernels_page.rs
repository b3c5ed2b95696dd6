//! The pages `docs/kernels.md` and `docs/hosts.md` are true: the tables of plans are generated (`TILEWRIGHT_UPDATE=1` writes them anew), the lists of what plans
//! support are complete, the layouts are the plan's own, and the excerpts are in the emitted text and in `examples/launch.c`.

#[path = "common/generated.rs"]
mod generated;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::kernels::gemm::{
    Activation, Config, DataType, Gemm, Mainloop, Operands, PlanError, Schedule, Specialized,
};

const PAGE: &str = concat!(
    include_str!("../docs/kernels.md"),
    include_str!("../docs/hosts.md"),
);

/// The plan that the page takes apart, and its transposes.
fn example() -> (Specialized, Operands) {
    let plan = "mma-f16-128x128x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("it is listed");
    (plan, "nn".parse().expect("transposes"))
}

/// The blocks of a language.
fn blocks(language: &str) -> impl Iterator<Item = &str> {
    let all = PAGE.split("\n```").skip(1).step_by(2);
    all.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// The rows of the table that begins with `header`, in cells.
fn table(header: &str) -> Vec<Vec<&str>> {
    let (_, rest) = PAGE.split_once(header).expect("the table");
    let rows = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn names(cell: &str) -> Vec<&str> {
    cell.split(", ").filter(|name| !name.is_empty()).collect()
}

fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// Bytes of dynamic shared memory of a block.
fn shared_bytes(plan: Config) -> u32 {
    let problem = Gemm::packed(1024, 1024, 1024, Operands::ALL[0]);
    let plan = plan
        .specialize(&problem, Schedule::default())
        .expect("aligned");
    let launch = plan.launch(&problem).expect("it serves");
    launch.expect("something to launch").shared_bytes
}

/// Rows of a table: equal rows of several types are one, with the types in front.
#[derive(Default)]
struct Grouped(Vec<(String, Vec<String>)>);

impl Grouped {
    fn add(&mut self, data_type: DataType, row: String) {
        let data_type = data_type.to_string();
        match self.0.iter_mut().find(|(known, _)| *known == row) {
            Some((_, types)) => types.push(data_type),
            None => self.0.push((row, vec![data_type])),
        }
    }

    /// The types in the order in which they come first.
    fn write(&self, text: &mut String) {
        let mut order: Vec<&Vec<String>> = Vec::new();
        for (_, types) in &self.0 {
            if !order.contains(&types) {
                order.push(types);
            }
        }
        let of_types = |t| self.0.iter().filter(move |(_, types)| types == t);
        for (row, types) in order.into_iter().flat_map(of_types) {
            let _ = writeln!(text, "| {} | {row}", types.join(", "));
        }
    }
}

/// The part of a name behind family and type.
fn tile_of(plan: &Config) -> String {
    let name = plan.to_string();
    let family = ["sgemm", "wgmma", "mma"].map(|f| format!("{f}-"));
    let tail = family.iter().find_map(|f| name.strip_prefix(f.as_str()));
    let tail = tail.expect("a family");
    let tail = tail.strip_prefix(&format!("{}-", plan.data_type));
    tail.unwrap_or_else(|| name.strip_prefix("sgemm-").expect("f32"))
        .to_owned()
}

/// Warps multiply by themselves, and copy by `cp.async` where there is that.
fn is_of_warps(config: &Config) -> bool {
    matches!(
        config.mainloop,
        Mainloop::Simt { .. } | Mainloop::MmaSync { .. }
    )
}

/// The tables of all plans, as the page has them.
fn tables_of_plans() -> String {
    let mut text = String::from(
        "Plans of FMA units without `cp.async`:\n\n| plan | tile | threads | shared memory | from |\n|---|---|---|---|---|\n",
    );
    let mut listed = BTreeSet::new();
    for plan in Config::table().filter(|c| !c.is_wgmma() && !is_of_warps(c)) {
        let [m, n, k] = plan.tile;
        let kernel = plan.kernel().emit(Operands::ALL[0], plan.min_arch());
        let kernel = kernel.expect("it proves");
        let (_, bytes) = kernel.ptx.split_once("smem[").expect("shared memory");
        let (bytes, _) = bytes.split_once(']').expect("its size");
        let kibibytes = bytes.parse::<u32>().expect("a number") / 1024;
        let (name, threads, arch) = (plan.to_string(), plan.threads(), plan.min_arch());
        let _ = writeln!(
            text,
            "| `{name}` | {m}x{n}x{k} | {threads} | {kibibytes} KiB | `{arch}` |"
        );
        listed.insert(name);
    }
    text += "\nPlans of `mma.sync`, and in f32 of FMA units, by `cp.async` (`mma-TYPE-TILE`, `sgemm-TILE`); warps along the rows and the columns of the tile:\n\n";
    text += "| types | tile | warps | stages | shared memory | from |\n|---|---|---|---|---|---|\n";
    let mut rows = Grouped::default();
    for plan in Config::table().filter(is_of_warps) {
        let (tile, [m, n], stages) = (tile_of(&plan), plan.warps(), plan.stages);
        let (kibibytes, arch) = (shared_bytes(plan) / 1024, plan.min_arch());
        let row = format!("{tile} | {m}x{n} | {stages} | {kibibytes} KiB | `{arch}` |");
        rows.add(plan.data_type, row);
        listed.insert(plan.to_string());
    }
    rows.write(&mut text);
    text += "\nPlans of `wgmma` (`wgmma-TYPE-TILE`), for `sm_90`; consumer warpgroups:\n\n";
    text += "| types | tile | warpgroups | stages | shared memory |\n|---|---|---|---|---|\n";
    let mut rows = Grouped::default();
    for plan in Config::table().filter(Config::is_wgmma) {
        let groups = plan.warp_count() / 4;
        let (tile, stages) = (tile_of(&plan), plan.stages);
        let kibibytes = shared_bytes(plan) / 1024;
        let row = format!("{tile} | {groups} | {stages} | {kibibytes} KiB |");
        rows.add(plan.data_type, row);
        listed.insert(plan.to_string());
        let serves = Arch::ALL.into_iter().filter(|&arch| plan.runs_on(arch));
        assert_eq!(serves.collect::<Vec<_>>(), [Arch(90)], "{plan}");
    }
    rows.write(&mut text);
    let all: BTreeSet<_> = Config::table().map(|config| config.to_string()).collect();
    assert_eq!(listed, all);
    text
}

#[test]
fn every_plan_is_listed_as_it_is() {
    generated::parts("kernels.md", &[("plans", tables_of_plans())]);
}

#[test]
fn the_main_loops_are_those_of_the_kernels() {
    let header = "| main loop | FMAs | loads | stores | others | FMAs | FMAs and loads |";
    let rows = table(header);
    assert!(rows.len() >= 4, "{rows:?}");
    for row in rows {
        let plan = code(row[0])
            .parse::<Config>()
            .map(Config::kernel)
            .expect("a plan");
        let tn = "tn".parse().expect("transposes");
        let kernel = plan.emit(tn, plan.min_arch()).expect("it proves");
        let mix = kernel.mix.expect("a main loop");
        let counts = [mix.products, mix.loads, mix.stores, mix.others];
        let mut expected = counts.map(|n| n.to_string()).to_vec();
        let shares = [mix.multiplying(), mix.useful()];
        expected.extend(shares.map(|share| format!("{:.1} %", 100.0 * share)));
        assert_eq!(row[1..], expected, "{plan}");
    }
}

#[test]
fn the_limits_of_shared_memory_are_those_of_the_architectures() {
    let (_, text) = PAGE.split_once("A block can have ").expect("the sentence");
    let (text, _) = text.split_once(". ").expect("its end");
    let mut of = BTreeMap::new();
    let mut kibibytes = 0;
    for word in text.split_whitespace() {
        if let Ok(number) = word.parse::<u32>() {
            kibibytes = number;
        } else if word.starts_with("`sm_") {
            let arch: Arch = code(word.trim_end_matches(',')).parse().expect("known");
            of.insert(arch, 1024 * kibibytes);
        }
    }
    let all: BTreeMap<_, _> = Arch::ALL.map(|a| (a, a.shared_limit())).into();
    assert_eq!(of, all);
}

/// A plan of a type for one problem; whether it has a kernel for it.
fn has(data_type: DataType, change: impl Fn(&mut Gemm)) -> bool {
    let mut problem = Gemm::packed(64, 64, 64, Operands::ALL[0]);
    change(&mut problem);
    let of_type = Config::table()
        .map(Config::kernel)
        .filter(|p| p.data_type == data_type);
    let mut served = of_type.map(
        |plan| match plan.specialize(&problem, Schedule::default()) {
            Ok(_) => true,
            Err(PlanError::Unsupported { .. }) => false,
            Err(e) => panic!("{data_type}: {e}"),
        },
    );
    served.any(|served| served)
}

#[test]
fn what_is_supported_is_what_plans_adapt_to() {
    let rows = table("| type | A, B | sums | C | activation | α, β | from |");
    assert_eq!(rows.len(), DataType::ALL.len());
    for (row, data_type) in rows.into_iter().zip(DataType::ALL) {
        let [name, operand, sums, results, activations, scalar, from] = row[..] else {
            panic!("{row:?}")
        };
        assert_eq!(name, data_type.to_string());
        assert_eq!(operand, data_type.operand().to_string(), "{name}");
        assert_eq!(sums, data_type.accumulator().to_string(), "{name}");
        assert_eq!(scalar, data_type.scalar().to_string(), "{name}");
        let results = names(results);
        assert_eq!(results[0], data_type.result().to_string(), "{name}");
        for element in [
            Element::F32,
            Element::F16,
            Element::Bf16,
            Element::F64,
            Element::S32,
        ] {
            let served = has(data_type, |p| p.output = Some(element));
            assert_eq!(
                served,
                results.contains(&element.to_string().as_str()),
                "{name}, {element}"
            );
        }
        for activation in [Activation::Relu, Activation::Gelu] {
            let served = has(data_type, |p| p.epilogue.activation = activation);
            let listed = names(activations).contains(&activation.to_string().as_str());
            assert_eq!(served, listed, "{name}, {activation}");
        }
        let of_type = Config::table()
            .map(Config::kernel)
            .filter(|p| p.data_type == data_type);
        let first = of_type.map(|p| p.min_arch()).min().expect("a plan");
        assert_eq!(code(from), first.to_string(), "{name}");
    }
}

#[test]
fn narrow_copies_are_where_the_page_says() {
    for plan in Config::table().filter(is_of_warps) {
        let odd = |bytes: u32| {
            let mut problem = Gemm::packed(64, 64, 64, Operands::ALL[0]);
            (problem.alignment.a, problem.alignment.b) = (bytes, bytes);
            plan.specialize(&problem, Schedule::default()).is_ok()
        };
        let [m, n, depth] = plan.tile;
        let small = [[64, 64], [16, 128], [128, 32], [32, 64], [16, 64]].contains(&[m, n])
            || ([[64, 128], [128, 64]].contains(&[m, n]) && plan.threads() == 256);
        let bytes = plan.data_type.bytes();
        let narrowest = odd(bytes);
        let widened = matches!(plan.data_type, DataType::E4m3 | DataType::E5m2);
        assert_eq!(odd(8), small, "{plan}");
        let expected = small && !(widened && [m, n, depth] != [64, 64, 32]);
        assert_eq!(narrowest, expected, "{plan}");
    }
}

#[test]
fn the_layouts_are_the_plans_own() {
    let (plan, operands) = example();
    let own = plan.layouts(operands).expect("it composes");
    let own: Vec<_> = own.iter().map(|l| (l.name, l.layout.as_str())).collect();
    let shown = blocks("text").find(|b| b.starts_with("sharedA"));
    let shown = shown.expect("the layouts").lines();
    let shown: Vec<_> = shown
        .map(|line| line.split_once(' ').expect("a name and a layout"))
        .map(|(name, layout)| (name, layout.trim()))
        .collect();
    assert_eq!(shown, own);
}

/// Register and label numbers change with every improvement of the emitter: they are left out.
fn unnumbered(line: &str) -> String {
    let mut text = String::new();
    // In a register's or a label's name.
    let mut inside = false;
    let line = line.trim().replace("k0_", "%k0_");
    for c in line.chars() {
        inside = c == '%' || (inside && (c.is_alphanumeric() || c == '_'));
        if !(inside && c.is_ascii_digit()) {
            text.push(c);
        }
    }
    text
}

/// The lines of an excerpt follow each other in `text`; a line `…` stands for any number of lines.
fn excerpt(what: &str, shown: &str, text: &[String], unify: fn(&str) -> String) {
    let mut from = 0;
    for part in shown.split("\n…\n") {
        let lines: Vec<String> = part.lines().map(unify).collect();
        let mut places = text[from..].windows(lines.len());
        let at = places.position(|window| window == lines);
        let at = at.unwrap_or_else(|| panic!("{what}: not found, or not in this order:\n{part}"));
        from += at + lines.len();
    }
}

#[test]
fn the_excerpts_of_the_kernel_are_in_its_text() {
    let (plan, operands) = example();
    let kernel = plan.emit(operands, Arch(80)).expect("it proves");
    let text: Vec<String> = kernel.ptx.lines().map(unnumbered).collect();
    let mut shown = 0;
    for block in blocks("ptx") {
        excerpt("PTX", block, &text, unnumbered);
        shown += 1;
    }
    assert_eq!(shown, 2);
}

#[test]
fn the_excerpt_of_the_program_is_in_it() {
    let plain = |line: &str| line.to_owned();
    let text: Vec<String> = include_str!("../examples/launch.c")
        .lines()
        .map(plain)
        .collect();
    let mut shown = 0;
    for block in blocks("c") {
        excerpt("launch.c", block, &text, plain);
        shown += 1;
    }
    assert_eq!(shown, 1);
}

#[test]
fn the_loop_reads_and_computes_as_often_as_the_page_says() {
    let (plan, operands) = example();
    let kernel = plan.emit(operands, Arch(80)).expect("it proves");
    let (_, body) = kernel.ptx.split_once("\nk0_").expect("the loop");
    let (body, _) = body.split_once("bra.uni k0_").expect("its end");
    let count = |what: &str| body.lines().filter(|l| l.trim().starts_with(what)).count();
    assert_eq!(count("ldmatrix."), 64);
    assert_eq!(count("mma.sync"), 4 * 2 * 32);
    assert_eq!(count("bar.sync"), 4);
    assert!(PAGE.contains("one instruction for 64 `ldmatrix`"));
    assert!(PAGE.contains("32 `mma.sync` follow each other"));
}

/// The codes of the page are those that errors have.
#[test]
fn every_refusal_is_listed() {
    let rows = table("| code | when | what works |");
    let listed: BTreeSet<_> = rows
        .iter()
        .flat_map(|row| names(row[0]))
        .map(code)
        .collect();
    let sources = [
        include_str!("../codegen/src/arch.rs"),
        include_str!("../kernels/src/gemm/error.rs"),
        include_str!("../kernels/src/gemm/problem/error.rs"),
    ];
    let mut own = BTreeSet::new();
    for source in sources {
        let (_, body) = source.split_once("pub fn code(&self)").expect("the codes");
        let (body, _) = body.split_once("\n    }\n").expect("its end");
        own.extend(body.split('"').skip(1).step_by(2));
    }
    assert_eq!(listed, own);
}
