//! What types do not exclude is recorded while a kernel is written, and refused when it is built: values of other kernels and of scopes that have ended, names and
//! comments that would be more than that, sizes and architectures that do not fit.

use super::{ARCH, Done, Result, layout, refusal, swizzled, vectors};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::pipeline::Staged;
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::value::{F32, Predicate, S32, U32, Variable};
use tilewright::codegen::view::{Combine, Fragment, Packed, ViewError};
use tilewright::codegen::{Arch, Proven, Usage};
use tilewright::kernels::gemm::epilogue::Function;
use tilewright::kernels::gemm::{Config, Operands, PlanError, Specialized};
use tilewright::{TiledMma, atoms};

/// What is done to a kernel.
type Step<'a> = Box<dyn Fn(&mut Kernel) + 'a>;
/// The same by name, where nothing is kept.
type Named = (&'static str, fn(&mut Kernel));

/// Builds a kernel of 64 threads that `write` writes, which is refused for a mistake; returns the message.
#[track_caller]
fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

fn mistake(write: impl FnOnce(&mut Kernel)) -> String {
    let mut k = Kernel::new("wrong", 64);
    write(&mut k);
    let error = refusal(k);
    assert_eq!(error.code(), "malformed", "{error}");
    error.to_string()
}

/// What a call gives is not needed.
fn used<T>(_: T) {}

/// Another kernel, and what it has of each kind.
struct Other {
    kernel: Kernel,
    size: Expr,
    value: F32,
    integer: U32,
    predicate: Predicate,
    variable: Variable<f32>,
    fragment: Fragment,
    /// Of s32.
    words: Fragment,
}

fn other() -> Other {
    let mut k = Kernel::new("elsewhere", 32);
    let (size, value) = (k.size("n", 100), k.argument("x"));
    let integer = U32::index(&mut k, size);
    let half = k.constant(50);
    let predicate = Predicate::of(&mut k, size, Cmp::Lt, half);
    let variable = k.variable(F32::from(1.0));
    let warps = layout("(1,1,1):(0,0,0)");
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &warps).expect("a product");
    let lane = k.lane();
    let fragment = k.accumulators(&mma, [16, 8], lane).expect("sums");
    let words = fragment.convert(&mut k, Element::S32).expect("words");
    Other {
        kernel: k,
        size,
        value,
        integer,
        predicate,
        variable,
        fragment,
        words,
    }
}

#[test]
fn values_of_another_kernel_are_refused_by_its_name() {
    let o = other();
    let uses: Vec<Step<'_>> = vec![
        Box::new(|k| used(o.value.add(k, 1.0))),
        Box::new(|k| used(F32::from(1.0).add(k, o.value))),
        Box::new(|k| used(F32::from(1.0).fma(k, 2.0, o.value))),
        Box::new(|k| used(o.value.exp2(k))),
        Box::new(|k| used(o.value.lt(k, 0.0))),
        Box::new(|k| used(o.value.to_f64(k))),
        Box::new(|k| used(o.value.pair_f16(k, 0.0))),
        Box::new(|k| used(o.value.pair_e4m3(k, 0.0))),
        Box::new(|k| used(F32::from(0.0).pair_e5m2(k, o.value))),
        Box::new(|k| used(o.integer.e4m3_to_f32(k))),
        Box::new(|k| used(o.integer.e5m2_to_f32(k))),
        Box::new(|k| used(o.value.bits(k))),
        Box::new(|k| used(o.value.shuffle(k, Shuffle::Index, 0))),
        Box::new(|k| used(F32::from(1.0).shuffle(k, Shuffle::Index, o.integer))),
        Box::new(|k| used(o.integer.shl(k, 3))),
        Box::new(|k| used(o.integer.xor(k, 3))),
        Box::new(|k| used(U32::from(1).mul_hi(k, o.integer))),
        Box::new(|k| used(U32::from(1).shl(k, o.integer))),
        Box::new(|k| used(o.integer.permute(k, 0, 0x3210))),
        Box::new(|k| used(k.variable(o.value))),
        Box::new(|k| used(o.variable.get(k))),
        Box::new(|k| o.variable.set(k, 2.0)),
        Box::new(|k| k.variable(F32::from(0.0)).set(k, o.value)),
        Box::new(|k| used(o.predicate.select(k, F32::from(1.0), 2.0))),
        Box::new(|k| used(o.predicate.and(k, o.predicate))),
        Box::new(|k| used(o.predicate.not().select(k, F32::from(1.0), 2.0))),
        Box::new(|k| k.when(o.predicate, |_| Done::Ok(())).expect("recorded")),
        Box::new(|k| k.exit_when(o.predicate)),
        Box::new(|k| used(k.reduce(o.value, &layout("64:0"), Combine::Add))),
        // Index expressions.
        Box::new(|k| used(k.add(o.size, o.size))),
        Box::new(|k| used(k.scale(o.size, 3))),
        Box::new(|k| used(k.div(o.size, 3))),
        Box::new(|k| used(k.tiles_in(o.size, 3))),
        Box::new(|k| used(k.tiles(Axis::X, o.size, 3))),
        Box::new(|k| used(S32::index(k, o.size))),
        Box::new(|k| used(k.bounded(o.size, 10))),
        Box::new(|k| used(k.smaller(o.size, o.size))),
        Box::new(|k| used(k.input("x", Element::F32, &[o.size]))),
        Box::new(|k| {
            let zero = k.constant(0);
            used(Predicate::of(k, o.size, Cmp::Gt, zero));
        }),
        Box::new(|k| {
            let body = |_: &mut Kernel, _| Done::Ok(());
            k.for_loop("i", 0, 1, o.size, body).expect("recorded");
        }),
        Box::new(|k| {
            let zero = k.constant(0);
            used(k.assume(o.size, Cmp::Gt, zero, "it is so"));
        }),
    ];
    for (i, write) in uses.iter().enumerate() {
        let error = mistake(write);
        assert!(
            error.contains("of the kernel `elsewhere` is used in the kernel `wrong`"),
            "{i}: {error}"
        );
    }
    assert!(o.kernel.build(ARCH).is_ok());
}

#[test]
fn views_and_fragments_of_another_kernel_are_refused_at_once() -> Result {
    let mut o = other();
    let n = o.kernel.size("m", 1 << 20);
    let x = o.kernel.input("a", Element::F32, &[n]);
    let tile = o.kernel.shared("tile", Element::F32, &swizzled("64:1"))?;
    let (i, thread, share) = (
        o.kernel.tiles(Axis::X, n, 32)?,
        o.kernel.thread(),
        layout("(32,1):(1,0)"),
    );
    let part = x
        .tile(&mut o.kernel, &[32], &[i])?
        .partition(&mut o.kernel, &share, thread)?;
    let values = o.kernel.load_tile(&part)?;
    let mut k = Kernel::new("wrong", 32);
    let (zero, lane) = (k.constant(0), k.lane());
    let refused = [
        x.at(&mut k, &[zero]).map(drop),
        x.tile(&mut k, &[32], &[zero]).map(drop),
        x.slice(&mut k, &[]).map(drop),
        tile.partition(&mut k, &layout("(32,2):(1,32)"), lane)
            .map(drop),
        tile.tile(&mut k, &[32], &[zero]).map(drop),
        part.vectors(&k, 1).map(drop),
        part.filled(&k, 0.0).map(drop),
        part.along(&mut k, 0, &x).map(drop),
        k.copy(&part, &part),
        k.load_tile(&part).map(drop),
        k.store_tile(&part, &values),
        k.load_fragment(&part).map(drop),
        k.fragment_of(&part, 0.0).map(drop),
        k.store_fragment(&part, &o.fragment),
        o.fragment.map(&mut k, |_, x| x).map(drop),
        o.fragment.map_at(&mut k, |_, x, _| x).map(drop),
        o.fragment.zip(&mut k, &o.fragment, |_, x, _| x).map(drop),
        o.fragment
            .zip3(&mut k, [&o.fragment; 2], |_, x, _, _| x)
            .map(drop),
        o.fragment
            .update_with_both(&mut k, [&o.fragment; 2], |_, x, _, _| x),
        o.words.unpack(&mut k, Packed::S4, Element::Bf16).map(drop),
        o.fragment.update(&mut k, |_, x| x),
        o.fragment.assign(&mut k, &o.fragment),
        o.fragment.reduce(&mut k, 1, Combine::Add).map(drop),
        o.fragment.fold(&mut k, 1, Combine::Add).map(drop),
        o.fragment.convert(&mut k, Element::F16).map(drop),
        o.fragment.combine(&mut k, Combine::Add).map(drop),
        o.fragment.thread_values::<f32>(&mut k).map(drop),
        o.fragment.coordinates(&mut k, 0).map(drop),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        let error = refused.expect_err(&format!("case {i}")).to_string();
        assert!(error.contains("of the kernel `elsewhere`"), "{i}: {error}");
    }
    Ok(())
}

#[test]
fn what_a_scope_computed_ends_with_it() {
    let inside = |k: &mut Kernel, of: &mut dyn FnMut(&mut Kernel)| {
        let (n, half) = (k.size("n", 100), k.constant(50));
        let p = Predicate::of(k, n, Cmp::Lt, half);
        k.when(p, |k| {
            of(k);
            Done::Ok(())
        })
        .expect("a branch");
        n
    };
    // A value of a branch behind it, and in its other side.
    let error = mistake(|k| {
        let mut leaked = None;
        inside(k, &mut |k| leaked = Some(F32::from(1.0).add(k, 1.0)));
        used(leaked.expect("set").add(k, 1.0));
    });
    assert!(
        error.contains("outside of the loop, branch or region"),
        "{error}"
    );
    let error = mistake(|k| {
        let (n, half) = (k.size("n", 100), k.constant(50));
        let p = Predicate::of(k, n, Cmp::Lt, half);
        let mut leaked = None;
        let then = |k: &mut Kernel| {
            leaked = Some(F32::from(1.0).add(k, 1.0));
            Done::Ok(())
        };
        k.when(p, then).expect("a branch");
        let again = |k: &mut Kernel| {
            used(leaked.expect("set").exp2(k));
            Done::Ok(())
        };
        k.when_else(p, |_| Ok(()), again).expect("a branch");
    });
    assert!(
        error.contains("outside of the loop, branch or region"),
        "{error}"
    );
    // A variable, a predicate and a fragment.
    mistake(|k| {
        let mut leaked = None;
        inside(k, &mut |k| leaked = Some(k.variable(F32::from(1.0))));
        used(leaked.expect("set").get(k));
    });
    mistake(|k| {
        let mut leaked = None;
        let n = inside(k, &mut |k| {
            let x = F32::from(1.0).add(k, 1.0);
            leaked = Some(x.lt(k, 3.0));
        });
        let _ = n;
        k.exit_when(leaked.expect("set"));
    });
    // The counter of a loop behind it, and in another loop.
    for again in [false, true] {
        let error = mistake(|k| {
            let n = k.size("n", 100);
            let mut leaked = None;
            let body = |_: &mut Kernel, i| {
                leaked = Some(i);
                Done::Ok(())
            };
            k.for_loop("i", 0, 1, n, body).expect("a loop");
            let i = leaked.expect("set");
            if again {
                let body = |k: &mut Kernel, _| {
                    used(S32::index(k, i));
                    Done::Ok(())
                };
                k.for_loop("j", 0, 1, n, body).expect("a loop");
            } else {
                used(S32::index(k, i));
            }
        });
        assert!(error.contains("has no value there"), "{error}");
    }
}

#[test]
fn values_stay_what_they_are() -> Result {
    // A value of a fragment that is set again, at once and by the next iteration.
    let sums = |k: &mut Kernel| {
        let mma =
            TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(2,1,1):(1,0,0)")).expect("a product");
        let thread = k.thread();
        k.accumulators(&mma, [32, 8], thread).expect("sums")
    };
    let error = mistake(|k| {
        let sums = sums(k);
        let mut leaked = None;
        let keep = |_: &mut Kernel, x| *leaked.insert(x);
        sums.map(k, keep).expect("a map");
        sums.update(k, |k, x| x.add(k, 1.0)).expect("an update");
        used(leaked.expect("set").add(k, 1.0));
    });
    assert!(
        error.contains("after the fragment was set again"),
        "{error}"
    );
    let error = mistake(|k| {
        let (sums, n) = (sums(k), k.size("n", 10));
        let mut leaked = None;
        let keep = |_: &mut Kernel, x| *leaked.insert(x);
        sums.map(k, keep).expect("a map");
        k.for_loop("i", 0, 1, n, |k, _| {
            used(leaked.expect("set").add(k, 1.0));
            sums.update(k, |k, x| x.add(k, 1.0))
        })
        .expect("a loop");
    });
    assert!(error.contains("a loop sets a fragment"), "{error}");
    // Kept in a register of its own it is what it was.
    let mut k = Kernel::new("kept", 64);
    let sums = sums(&mut k);
    let values: Vec<F32> = sums.thread_values(&mut k)?;
    sums.update(&mut k, |k, x| x.add(k, 1.0))?;
    used(values[0].add(&mut k, 1.0));
    assert!(k.build(ARCH).is_ok());
    Ok(())
}

#[test]
fn names_are_names() {
    let long = "x".repeat(2000);
    let names = [
        "",
        "9lives",
        "a b",
        "x;",
        "é",
        "%r0",
        "$x",
        "_x",
        "tid.x",
        "a\nret",
        "a\r",
        "a*/",
        "a//",
        "a\\",
        "smem",
        "WARP_SZ",
        "a\0",
        "a\u{2028}",
        &long,
    ];
    for name in names {
        let kernels: Vec<(&str, Step<'_>)> = vec![
            ("size", Box::new(|k| used(k.size(name, 10)))),
            ("argument", Box::new(|k| used(k.argument::<f32>(name)))),
            (
                "input",
                Box::new(|k| {
                    let n = k.constant(10);
                    used(k.input(name, Element::F32, &[n]));
                }),
            ),
            (
                "output",
                Box::new(|k| {
                    let n = k.constant(10);
                    used(k.output(name, Element::F32, &[n]));
                }),
            ),
            (
                "shared",
                Box::new(|k| used(k.shared(name, Element::F32, &swizzled("32:1")))),
            ),
            (
                "shared_for",
                Box::new(|k| used(k.shared_for(name, Element::F32, [8, 32], &[]))),
            ),
            (
                "ring",
                Box::new(|k| {
                    let tile = Staged::new(name, Element::F32, [8, 32], &[]);
                    used(k.ring(2, [tile], |_, _, _| Ok(())));
                }),
            ),
            (
                "loop",
                Box::new(|k| {
                    let n = k.constant(10);
                    k.for_loop(name, 0, 1, n, |_, _| Done::Ok(()))
                        .expect("recorded");
                }),
            ),
        ];
        for (kind, write) in kernels {
            let error = mistake(write);
            assert!(error.contains("the name `"), "{kind} {name:?}: {error}");
        }
        let error = refusal(Kernel::new(name, 32)).to_string();
        assert!(error.contains("of the kernel: "), "{name:?}: {error}");
        // The message is one line, whatever the name is.
        assert!(!error.contains(['\n', '\r', '\0']), "{error:?}");
    }
}

#[test]
fn a_name_is_one_things() {
    let twice: [&dyn Fn(&mut Kernel); 6] = [
        &|k| used((k.size("n", 1), k.size("n", 1))),
        &|k| used((k.size("n", 1), k.argument::<f32>("n"))),
        &|k| used(k.size("wrong", 1)),
        &|k| {
            let n = k.size("n", 1);
            used((
                k.input("x", Element::F32, &[n]),
                k.output("x", Element::F32, &[n]),
            ));
        },
        &|k| {
            let tile = swizzled("32:1");
            used((
                k.shared("t", Element::F32, &tile),
                k.shared("t", Element::F32, &tile),
            ));
        },
        &|k| {
            used((
                k.size("t", 1),
                k.shared("t", Element::F32, &swizzled("32:1")),
            ));
        },
    ];
    for write in twice {
        let error = mistake(write);
        assert!(error.contains("a second use of the name"), "{error}");
    }
}

#[test]
fn comments_stay_comments() -> Result {
    for text in [
        "a\rb",
        "a\u{b}b",
        "\0",
        "a\u{85}b",
        "a\u{2029}b",
        "a\u{202e}b",
        "a\\",
        "a\\ ",
        "why??/",
    ] {
        let error = mistake(|k| k.comment(text));
        assert!(error.contains("lines of visible text"), "{text:?}: {error}");
        mistake(|k| k.describe(text));
        let mut k = Kernel::new("k", 32);
        let (n, zero) = (k.size("n", 10), k.constant(0));
        assert!(k.assume(n, Cmp::Ge, zero, text).is_err(), "{text:?}");
    }
    // Each line is a comment of its own, and nothing in it ends one.
    let mut k = Kernel::new("k", 32);
    k.describe("first */ ret;\nexit;");
    k.comment("one\r\n*/ bar.sync 0;\n\ntwo");
    let text = k.build(ARCH)?.ptx;
    for line in [
        "// first */ ret;",
        "// exit;",
        "// one",
        "// */ bar.sync 0;",
        "// two",
    ] {
        assert!(text.lines().any(|l| l.trim() == line), "{line}: {text}");
    }
    Ok(())
}

#[test]
fn labels_are_no_parameters() -> Result {
    // Names that the text would give its labels, too.
    let mut k = Kernel::new("i_1_end", 32);
    let (n, a, b) = (k.size("done_0", 10), k.size("i_1", 10), k.size("i_2", 10));
    let (x, zero) = (k.variable(F32::from(0.0)), k.constant(0));
    let p = Predicate::of(&mut k, a, Cmp::Gt, zero);
    k.exit_when(p);
    for limit in [n, b] {
        k.for_loop("i", 0, 1, limit, |k, _| {
            x.set(k, 1.0);
            Done::Ok(())
        })?;
    }
    let text = k.build(ARCH)?.ptx;
    let mut labels: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_suffix(':'))
        .chain(["done_0", "i_1", "i_2", "i_1_end"])
        .collect();
    let all = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), all, "{text}");
    Ok(())
}

#[test]
fn sizes_fit_their_parameters() -> Result {
    for most in [-1, i64::MIN, 1 << 32, 1 << 40, i64::MAX] {
        let error = mistake(|k| used(k.size("n", most)));
        assert!(error.contains("a size is a u32"), "{most}: {error}");
    }
    let mut k = Kernel::new("k", 32);
    k.size("n", u32::MAX.into());
    assert_eq!(k.build(ARCH)?.params()[0].most, Some(u32::MAX.into()));
    for threads in [0, 1025, u32::MAX] {
        let error = refusal(Kernel::new("k", threads)).to_string();
        assert!(error.contains("a block has 1 to 1024"), "{error}");
    }
    // 4096 bytes of parameters.
    let mut k = Kernel::new("k", 32);
    for i in 0..1025 {
        k.size(&format!("n{i}"), 10);
    }
    assert!(refusal(k).to_string().contains("4100 bytes"));
    Ok(())
}

#[test]
fn extents_are_known_at_launch() {
    let extents: [fn(&mut Kernel) -> Expr; 6] = [
        Kernel::thread,
        |k| k.block_index(Axis::X, 10),
        |k| {
            let (m, n) = (k.size("m", 10), k.size("n", 10));
            k.smaller(m, n)
        },
        |k| {
            let n = k.size("n", 10);
            k.bounded(n, 5)
        },
        |k| {
            let (m, n) = (k.size("m", 10), k.size("n", 10));
            k.sub(m, n)
        },
        |k| k.constant(-1),
    ];
    for extent in extents {
        for kind in 0..3 {
            let error = mistake(|k| {
                let extent = extent(k);
                match kind {
                    0 => used(k.input("x", Element::F32, &[extent])),
                    1 => used(k.output("x", Element::F32, &[extent])),
                    _ => used(k.tiles(Axis::Y, extent, 8)),
                }
            });
            assert!(error.contains("is not a size"), "{kind}: {error}");
        }
    }
}

#[test]
fn indices_have_64_bits() {
    let huge: [&dyn Fn(&mut Kernel); 6] = [
        &|k| {
            let n = k.size("n", 1 << 31);
            let a = k.scale(n, i64::MAX);
            used(k.scale(a, i64::MAX));
        },
        &|k| {
            let most = k.constant(i64::MAX);
            used(k.add(most, most));
        },
        &|k| {
            let least = k.constant(i64::MIN);
            used(k.scale(least, -1));
        },
        &|k| {
            let n = k.size("n", 1 << 31);
            let square = k.mul(n, n);
            used(k.mul(square, n));
        },
        &|k| {
            let thread = k.thread();
            used(k.linear(&[(i64::MAX, thread), (i64::MAX, thread)], 1));
        },
        &|k| {
            let n = k.size("n", 1 << 31);
            used(k.sub(n, n));
            let most = k.constant(i64::MIN);
            used(k.sub(n, most));
        },
    ];
    for write in huge {
        let error = mistake(write);
        assert!(error.contains("more than 64 bits"), "{error}");
    }
    for divisor in [0, -1, i64::MIN] {
        for f in [
            Kernel::div as fn(&mut Kernel, Expr, i64) -> Expr,
            Kernel::rem,
        ] {
            let error = mistake(|k| {
                let n = k.size("n", 10);
                f(k, n, divisor);
            });
            assert!(error.contains("the divisor is 1 or more"), "{error}");
        }
    }
    mistake(|k| {
        let (thread, one) = (k.thread(), k.constant(1));
        let before = k.sub(thread, one);
        used(k.div(before, 2));
    });
}

/// So many loops, one in the other.
fn nest(k: &mut Kernel, n: Expr, depth: usize) -> Done {
    if depth == 0 {
        return Ok(());
    }
    k.for_loop("i", 0, 1, n, |k, _| nest(k, n, depth - 1))
}

#[test]
fn loops_end() {
    for (start, step, most) in [
        (0, 0, 10),
        (0, -1, 10),
        (-1, 1, 10),
        (0, 1 << 31, u32::MAX.into()),
        (0, i64::MAX, 10),
        (i64::MAX, 1, 10),
        (0, 1, u32::MAX.into()),
    ] {
        let error = mistake(|k| {
            let n = k.size("n", most);
            k.for_loop("i", start, step, n, |_, _| Done::Ok(()))
                .expect("recorded");
        });
        assert!(error.contains("a counter begins at 0 or above"), "{error}");
    }
    let error = mistake(|k| {
        let yes = F32::from(1.0).lt(k, 2.0);
        k.break_when(yes);
    });
    assert!(error.contains("outside of a loop"), "{error}");
    let error = mistake(|k| {
        let n = k.size("n", 3);
        nest(k, n, 300).expect("recorded");
    });
    assert!(error.contains("nested deeper"), "{error}");
}

#[test]
fn kernels_are_not_exchanged_inside_of_a_loop() {
    let exchange = |other: &mut Kernel, k: &mut Kernel| {
        std::mem::swap(k, other);
        Done::Ok(())
    };
    let mut k = Kernel::new("k", 32);
    let mut other = Kernel::new("other", 32);
    let n = k.size("n", 10);
    let done = k.for_loop("i", 0, 1, n, |k, _| exchange(&mut other, k));
    done.expect("recorded");
    for k in [k, other] {
        assert_eq!(refusal(k).code(), "malformed");
    }
    let mut k = Kernel::new("k", 32);
    let mut other = Kernel::new("other", 32);
    let p = F32::from(1.0).lt(&mut k, 2.0);
    let both = k.when_else(p, |k| exchange(&mut other, k), |_| Ok(()));
    both.expect("recorded");
    for k in [k, other] {
        assert_eq!(refusal(k).code(), "malformed");
    }
}

#[test]
fn an_architecture_has_what_a_kernel_needs() -> Result {
    let with_shared = |elements: i64| {
        let mut k = Kernel::new("k", 32);
        k.shared("tile", Element::F32, &swizzled(&format!("{elements}:1")))?;
        Ok::<_, ViewError>(k)
    };
    for (arch, kib) in [
        (75, 64),
        (80, 163),
        (86, 99),
        (89, 99),
        (90, 227),
        (100, 227),
        (120, 99),
    ] {
        assert!(with_shared(kib * 256)?.build(Arch(arch)).is_ok(), "{arch}");
        if kib < 227 {
            let error = with_shared(kib * 256 + 1)?
                .build(Arch(arch))
                .expect_err("too much");
            assert_eq!(error.code(), "malformed");
            assert!(
                error.to_string().contains("bytes of shared memory"),
                "{error}"
            );
        }
    }
    // Wherever it stands.
    let lacks = |k: &mut Kernel| used(F32::from(1.0).max_nan(k, 2.0));
    let places: [&dyn Fn(&mut Kernel) -> Done; 4] = [
        &|k| {
            lacks(k);
            Ok(())
        },
        &|k| {
            let p = F32::from(1.0).lt(k, 2.0);
            k.when_else(
                p,
                |_| Ok(()),
                |k| {
                    lacks(k);
                    Ok(())
                },
            )
        },
        &|k| {
            let n = k.size("n", 3);
            k.for_loop("i", 0, 1, n, |k, _| {
                lacks(k);
                Ok(())
            })
        },
        &|k| {
            k.region(|k| {
                lacks(k);
                Ok(())
            })
        },
    ];
    for place in places {
        for (arch, fits) in [(75, false), (80, true)] {
            let mut k = Kernel::new("k", 32);
            place(&mut k)?;
            match k.build(Arch(arch)) {
                Ok(_) => assert!(fits),
                Err(error) => {
                    assert!(!fits, "{error}");
                    assert!(
                        error.to_string().contains("sm_80 is the first to have"),
                        "{error}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// What a plan says of a function.
fn emitted(
    arch: Arch,
    f: impl Fn(&mut Kernel) + Send + Sync + 'static,
) -> std::result::Result<(), PlanError> {
    let function = Function::new("f", move |k, _| {
        f(k);
        Ok(())
    });
    let plan = named("sgemm-maxas-64").with_epilogue(function)?;
    plan.emit(Operands::ALL[0], arch).map(drop)
}

#[test]
fn functions_of_products_compute_and_declare_nothing() -> Result {
    emitted(Arch(75), |k| used(F32::from(1.0).add(k, 2.0)))?;
    let functions: [Named; 7] = [
        ("declares a parameter", |k| used(k.size("late", 10))),
        ("declares a parameter", |k| used(k.argument::<f32>("late"))),
        ("declares shared memory", |k| {
            used(k.shared("late", Element::F32, &swizzled("32:1")));
        }),
        ("the comment", |k| k.comment("a\rb")),
        ("more than 64 bits", |k| {
            let most = k.constant(i64::MAX);
            k.add(most, most);
        }),
        ("sm_80 is the first to have", |k| {
            used(F32::from(1.0).max_nan(k, 2.0));
        }),
        ("leaves another kernel behind", |k| {
            *k = Kernel::new("other", 32);
        }),
    ];
    for (what, f) in functions {
        let error = emitted(Arch(75), f).expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    }
    // A value that one call of the function leaves for the next.
    let leaked = std::sync::Mutex::new(None);
    let function = Function::new("f", move |k, c| {
        let mut last = leaked.lock().expect("one thread");
        let sum = c.values::<f32>(k)?[0];
        if let Some(last) = *last {
            let sum = sum.add(k, last);
            c.set(k, 0, sum)?;
        }
        *last = Some(sum.add(k, 1.0));
        Ok(())
    });
    let plan = named("sgemm-maxas-64").with_epilogue(function)?;
    let first = plan.emit(Operands::ALL[0], ARCH);
    assert!(first.is_err() || plan.emit(Operands::ALL[0], ARCH).is_err());
    // Another type than is computed in.
    let wrong = Function::new("f", |k, c| c.values::<i32>(k).map(drop));
    let error = named("sgemm-maxas-64")
        .with_epilogue(wrong)?
        .emit(Operands::ALL[0], ARCH);
    let error = error.expect_err("f32").to_string();
    assert!(error.contains("this epilogue computes in f32"), "{error}");
    Ok(())
}

#[test]
fn the_contract_says_what_a_kernel_does_with_a_buffer() -> Result {
    use tilewright::host::{Arg, On, run};
    let usages = |reads: bool| {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
        let x = x.partition(&mut k, &one, thread)?;
        let y = y.partition(&mut k, &one, thread)?;
        let x = k.load_fragment(&x)?;
        let sum = if reads {
            let old = k.load_fragment(&y)?;
            x.zip(&mut k, &old, |k, x, y| x.add(k, y))?
        } else {
            x
        };
        k.store_fragment(&y, &sum)?;
        Ok::<_, Box<dyn std::error::Error>>(k.build(ARCH)?)
    };
    let (written, read) = (usages(false)?, usages(true)?);
    let usage = |kernel: &Proven, name: &str| {
        let buffers = kernel.buffers(|_| Some(100)).expect("a size");
        let found = buffers.into_iter().find(|b| b.name == name);
        found.map(|b| (b.usage, b.bytes, b.alignment))
    };
    assert_eq!(usage(&written, "x"), Some((Usage::Input, 400, 16)));
    assert_eq!(usage(&written, "y"), Some((Usage::Output, 400, 16)));
    assert_eq!(usage(&read, "y"), Some((Usage::InOut, 400, 16)));

    let x = vec![1.0f32; 100];
    let run = |kernel: &Proven, y: Arg<'static>| {
        let args = [("n", Arg::from(100_u32)), ("x", Arg::input(&x)), ("y", y)];
        run(kernel, On::Emulator, args)
    };
    let outcome = run(&read, Arg::in_out(&x))?;
    outcome.assert_clean();
    assert_eq!(outcome.get::<f32>("y")?, vec![2.0; 100]);
    for (kernel, y, wanted) in [
        (&read, Arg::output::<f32>(100), "give it by `Arg::in_out`"),
        (&read, Arg::input(&x), "give it by `Arg::in_out`"),
        (&written, Arg::input(&x), "give it by `Arg::output`"),
    ] {
        let error = run(kernel, y).expect_err("refused");
        assert_eq!(error.code(), "buffer_role");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let given = [
        ("n", Arg::from(100_u32)),
        ("x", Arg::output::<f32>(100)),
        ("y", Arg::output::<f32>(100)),
    ];
    let error = tilewright::host::run(&written, On::Emulator, given).expect_err("no content");
    assert!(
        error.to_string().contains("give it by `Arg::input`"),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_mistake_is_said_before_what_follows_from_it() -> Result {
    // The kernel stores nothing to its output either.
    let (mut k, _, _) = vectors(Element::F32, Element::F32)?;
    k.size("a b", 10);
    let error = refusal(k);
    assert!(matches!(error, ProofError::Malformed { .. }), "{error:?}");
    Ok(())
}
