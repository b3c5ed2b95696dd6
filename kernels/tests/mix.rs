//! What main loops are made of: the counts are those of the text, and `dgemm-4x4` has more useful instructions than the walk-through's.

use layout_codegen::Arch;
use layout_codegen::mix::Mix;
use tilewright_kernels::gemm::{Config, Operands, Specialized};

/// The main loop's instructions as they stand in the text: from the label to the branch back to it.
fn in_the_text(ptx: &str) -> Mix {
    let mut mix = Mix::default();
    let body = ptx.lines().map(str::trim);
    let body = body.skip_while(|line| *line != "k0_1:").skip(1);
    for line in body.take_while(|line| *line != "k0_1_end:") {
        assert!(!line.ends_with(':'), "the main loop has no branch: {line}");
        if line.starts_with("//") {
            continue;
        }
        let words = line.split_whitespace();
        let name = words.into_iter().find(|word| !word.starts_with('@'));
        let count = match name.expect("an instruction") {
            name if name.starts_with("fma.") => &mut mix.products,
            name if name.starts_with("ld.") => &mut mix.loads,
            name if name.starts_with("st.") => &mut mix.stores,
            _ => &mut mix.others,
        };
        *count += 1;
    }
    mix
}

fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

#[test]
fn the_counts_are_those_of_the_text() {
    for plan in ["dgemm-4x4", "sgemm-r700-64"].map(named) {
        for operands in Operands::ALL {
            let kernel = plan.emit(operands, Arch(80)).expect("it proves");
            let mix = kernel.mix.expect("a main loop");
            assert_eq!(mix, in_the_text(&kernel.ptx), "{plan}, {operands}");
            assert_eq!(
                mix.products,
                mix.all() - mix.loads - mix.stores - mix.others
            );
        }
    }
}

/// 16 multiply-adds and 4 reads of 16 bytes a k, two pointers that advance once a turn of 16 k, and 95 % of the loop useful, whatever is
/// transposed; the walk-through's loop has 57 %.
#[test]
fn dgemm_4x4_has_more_useful_instructions_than_the_walk_through() {
    let plan = named("dgemm-4x4");
    let (source, theirs) = plan.source_mix().expect("it has a source");
    assert_eq!((source, theirs), ("the HD 7970 walk-through", 0.57));
    for operands in Operands::ALL {
        let mix = plan.emit(operands, Arch(80)).expect("it proves").mix;
        let mix = mix.expect("a main loop");
        assert_eq!(mix.products, 16 * 16, "{operands}");
        assert_eq!(mix.loads, 16 * 4 + 4, "{operands}");
        // Stores of two tiles, two barriers, at most six additions to pointers and counters, a comparison and a branch.
        assert!(mix.stores <= 8 && mix.others <= 9, "{operands}: {mix}");
        assert!(
            mix.useful() > 0.95 && mix.useful() > theirs,
            "{operands}: {mix}"
        );
    }
}

#[test]
fn every_plan_has_a_main_loop_that_multiplies() {
    for plan in Config::table().map(Config::kernel) {
        let kernel = plan.emit(Operands::ALL[0], plan.min_arch());
        let mix = kernel.expect("it proves").mix;
        assert!(mix.is_some_and(|mix| mix.products > 0), "{}", plan.name());
    }
}

/// 8×8 sums a thread: 64 multiply-adds for four reads, in the maxas plans and in the one by the R700's map.
#[test]
fn sgemm_loops_multiply() {
    for (name, least) in [
        ("sgemm-maxas-64", 0.89),
        ("sgemm-maxas-128", 0.89),
        ("sgemm-r700-64", 0.92),
    ] {
        let plan = name
            .parse::<Config>()
            .map(Config::kernel)
            .expect("it is listed");
        // B as it lies and A transposed: both sides are contiguous.
        let tn: Operands = "tn".parse().expect("transposes");
        let kernel = plan.emit(tn, Arch(80)).expect("it proves");
        let mix = kernel.mix.expect("a main loop");
        assert!(mix.multiplying() >= least, "{name}: {mix}");
    }
}

/// Multiply-adds of all instructions of the main loops by `cp.async`: nine in ten with 8×8 sums a lane, more with 8×16.
#[test]
fn sgemm_by_cp_async_issues_little_beside_products() {
    for (name, least) in [
        ("sgemm-128x128x16", 0.89),
        ("sgemm-128x256x8", 0.91),
        ("sgemm-256x128x8", 0.91),
    ] {
        let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
        for operands in Operands::ALL {
            let mix = plan.emit(operands, Arch(90)).expect("it proves").mix;
            let mix = mix.expect("a main loop");
            assert!(mix.multiplying() >= least, "{name}, {operands}: {mix}");
        }
    }
}
