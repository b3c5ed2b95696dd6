//! Routing to experts, rows in their order, weighted sums.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{CombinedRows, GatheredRows, Problem, Routing};
use tilewright::host::{On, run};
use tilewright::kernels::experts::{self, Combine, Gather, LOGITS, Route, combine, gather, route};

use super::right;

/// Few experts and many, some without a vector of logits or with fewer logits than lanes; tokens in one and in several blocks of the tables.
#[test]
fn ragged_routing() {
    for (number, (tokens, experts, top)) in [
        (1, 1, 1),
        (3, 2, 2),
        (31, 8, 2),
        (256, 64, 6),
        (257, 60, 4),
        (100, 256, 8),
        (70, 512, 16),
        (1000, 33, 1),
        (530, 17, 16),
        (0, 8, 2),
    ]
    .into_iter()
    .enumerate()
    {
        for element in LOGITS {
            let kernel = Route {
                normalized: number % 2 == 0,
                ..Route::new(element, experts, top)
            };
            let problem = Routing::new(kernel, tokens);
            right(&problem, &problem.random(4), &format!("{problem:?}"));
        }
    }
}

/// Equal logits, NaN, infinities: the lower expert first, and NaN last.
#[test]
fn equal_and_special_logits() {
    for normalized in [true, false] {
        let kernel = Route {
            normalized,
            ..Route::new(Element::F32, 40, 8)
        };
        let problem = Routing::new(kernel, 12);
        let mut inputs = problem.random(5);
        let x = &mut inputs[0];
        for expert in 0..40 {
            x.set(0, expert, 0.0);
            x.set(1, expert, f64::from(u8::from(expert % 3 == 0)));
            x.set(2, expert, f64::NEG_INFINITY);
            x.set(3, expert, f64::NAN);
            x.set(4, expert, if expert < 35 { f64::NAN } else { 1.0 });
            x.set(5, expert, if expert < 35 { f64::NEG_INFINITY } else { 1.0 });
            x.set(6, expert, -1e30 * expert as f64);
        }
        x.set(7, 13, f64::INFINITY);
        x.set(8, 39, f64::NAN);
        x.set(9, 20, f64::from(f32::MAX));
        right(&problem, &inputs, "special logits");
    }
}

/// A kernel takes other numbers of experts than it was made for. With fewer than a token has, nothing outside of the arrays is touched.
#[test]
fn other_numbers_of_experts() {
    let kernel = Route::new(Element::Bf16, 40, 6);
    let kernels = Routing::new(kernel, 50).sequence(Arch(80)).expect("proven");
    for (experts, is_taken) in [(64, true), (7, true), (6, true), (5, true), (65, false)] {
        let problem = Routing::new(Route { experts, ..kernel }, 50);
        let inputs = problem.random(6);
        let outcome = run(&kernels, On::Emulator, problem.args(&inputs));
        assert_eq!(outcome.is_ok(), is_taken, "{experts}");
        if let Ok(outcome) = outcome {
            outcome.assert_clean();
            if experts < 6 {
                continue;
            }
            let compared = problem.compare(&inputs, &outcome).expect("the outputs");
            assert!(compared.passed(), "{experts}: {compared:?}");
        }
    }
}

const SIZES: [[u64; 3]; 8] = [
    [1, 1, 1],
    [3, 9, 16],
    [20, 70, 257],
    [7, 33, 520],
    [9, 5, 1030],
    [0, 5, 40],
    [5, 0, 40],
    [5, 8, 0],
];

#[test]
fn rows_in_another_order() {
    for element in experts::GATHERED {
        for [tokens, rows, k] in SIZES {
            let kernel = Gather { element };
            let problem = GatheredRows {
                kernel,
                tokens,
                rows,
                k,
            };
            let mut inputs = problem.random(7);
            let what = format!("{problem:?}");
            right(&problem, &inputs, &what);
            if rows > 8 {
                for (row, number) in [(0, -1), (2, i32::MIN), (5, i32::MAX)] {
                    inputs[1].set(0, row, number.into());
                }
                inputs[1].set(0, 8, tokens as f64);
                right(&problem, &inputs, &format!("{what}, rows that are none"));
            }
        }
    }
}

#[test]
fn weighted_sums_of_rows() {
    for (number, [tokens, rows, n]) in SIZES.into_iter().enumerate() {
        for element in LOGITS {
            let kernel = Combine {
                element,
                top: [1, 2, 8, 16][number % 4],
            };
            let problem = CombinedRows {
                kernel,
                tokens,
                rows,
                n,
            };
            let mut inputs = problem.random(8);
            let what = format!("{problem:?}");
            right(&problem, &inputs, &what);
            if tokens > 5 {
                inputs[1].set(0, 0, -7.0);
                inputs[1].set(5, 0, rows as f64);
                right(&problem, &inputs, &format!("{what}, rows that are none"));
            }
        }
    }
}

/// A sum is over the experts of its token in their order, bit by bit, wherever their rows are.
#[test]
fn sums_do_not_depend_on_the_rows() {
    let kernel = Combine {
        element: Element::F32,
        top: 3,
    };
    let problem = CombinedRows {
        kernel,
        tokens: 2,
        rows: 12,
        n: 200,
    };
    let mut first = problem.random(9);
    let mut second = first.clone();
    for choice in 0..3 {
        first[1].set(0, choice, choice as f64);
        second[1].set(0, choice, (11 - 2 * choice) as f64);
        for j in 0..200 {
            let x = first[0].at(choice, j);
            second[0].set(11 - 2 * choice, j, x);
        }
    }
    let sums = [&first, &second].map(|inputs| {
        let outcome = right(&problem, inputs, "sums");
        outcome.bytes("y").expect("y")[..800].to_vec()
    });
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn the_assembler_takes_them() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    for arch in [Arch(80), Arch(90), Arch(120)] {
        for element in LOGITS {
            for (experts, top) in [(8, 2), (256, 8), (512, 16)] {
                let mut kernels = route(Route::new(element, experts, top), arch).expect("proven");
                kernels.push(gather(Gather { element }, arch).expect("proven"));
                kernels.push(combine(Combine { element, top }, arch).expect("proven"));
                for kernel in kernels {
                    let assembly = ptxas.assemble(&kernel.ptx, &arch.to_string());
                    for resources in &assembly.expect("it assembles").kernels {
                        let what = format!("{} {arch}", kernel.name());
                        assert_eq!(resources.spill_store_bytes, 0, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_there_is_no_kernel_for_is_refused() {
    let kernel = Route::new(Element::Bf16, 64, 4);
    for (kernel, expected) in [
        (
            Route { top: 17, ..kernel },
            "experts of a token: 17 is not 1 to 16",
        ),
        (
            Route { top: 0, ..kernel },
            "experts of a token: 0 is not 1 to 16",
        ),
        (
            Route {
                experts: 3,
                ..kernel
            },
            "experts: 3 is not at least as many as a token has, and 512 at most",
        ),
        (
            Route {
                experts: 513,
                ..kernel
            },
            "experts: 513 is not at least as many as a token has, and 512 at most",
        ),
        (
            Route {
                element: Element::S32,
                ..kernel
            },
            "there is no such kernel for elements of type s32: take f32, f16 or bf16",
        ),
    ] {
        let error = route(kernel, Arch(80)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let error = gather(
        Gather {
            element: Element::S32,
        },
        Arch(80),
    );
    assert_eq!(error.unwrap_err().code(), "element");
    let of = |element, top| combine(Combine { element, top }, Arch(80)).unwrap_err();
    assert_eq!(of(Element::E4m3, 2).code(), "element");
    assert_eq!(of(Element::F32, 0).code(), "number");
}
