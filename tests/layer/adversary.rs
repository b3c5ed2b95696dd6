//! Kernels that are wrong, tried as an adversary would: each is refused, with the right one of its kind accepted beside it.

use super::vectors;
use super::{
    ARCH, Done, Result, add, barrier_when, layout, refusal, swizzled, through_shared, without_lines,
};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::value::{F32, Predicate, S32, U32};
use tilewright::codegen::view::{Fragment, Partition, View};
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{Arg, On, run};
use tilewright::kernels::gemm::epilogue::Function;
use tilewright::kernels::gemm::{Config, Operands, PlanError, Specialized};
use tilewright::{Layout, TiledCopy, TiledMma, atoms};

fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

/// The shares of x, of y, and of a tile in shared memory: the own element, and another thread's.
fn shares() -> Result<(Kernel, [Partition; 4])> {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (thread, one, across) = (
        k.thread(),
        layout("(128,1):(1,0)"),
        layout("((64,2),1):((2,1),0)"),
    );
    let share = |k: &mut Kernel, v: &View, by: &Layout| v.partition(k, by, thread);
    let all = [
        share(&mut k, &x, &one)?,
        share(&mut k, &y, &one)?,
        share(&mut k, &tile, &one)?,
        share(&mut k, &tile, &across)?,
    ];
    Ok((k, all))
}

/// Reads what another thread has stored where `p` holds, and stores elsewhere.
fn read_or_store(
    k: &mut Kernel,
    p: Predicate,
    sums: &Fragment,
    [x, put, take]: [&Partition; 3],
) -> Done {
    let read = |k: &mut Kernel| {
        let other = k.load_fragment(take)?;
        add(k, sums, &other)
    };
    k.when_else(p, read, |k| k.copy(x, put))
}

/// An iteration reads what other threads have stored, or stores, by what is derived of the counter.
fn by_counter(barrier: bool, derive: &dyn Fn(&mut Kernel, Expr) -> Predicate) -> Result<Kernel> {
    let (mut k, [x, y, put, take]) = shares()?;
    let sums = k.fragment_of(&x, 0.0)?;
    let rounds = k.size("rounds", 1000);
    k.copy(&x, &put)?;
    k.barrier();
    k.for_loop("round", 0, 1, rounds, |k, round| {
        let p = derive(k, round);
        read_or_store(k, p, &sums, [&x, &put, &take])?;
        if barrier {
            k.barrier();
        }
        Done::Ok(())
    })?;
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

type Derived = dyn Fn(&mut Kernel, Expr) -> Predicate;

fn counted(f: impl Fn(&mut Kernel, Expr) -> Predicate + 'static) -> Box<Derived> {
    Box::new(f)
}

type Two = dyn Fn(&mut Kernel) -> [Predicate; 2];

fn two(f: impl Fn(&mut Kernel) -> [Predicate; 2] + 'static) -> Box<Two> {
    Box::new(f)
}

/// Predicates of a loop's counter, of symbols of their own.
fn derived() -> Vec<(&'static str, Box<Derived>)> {
    fn below(k: &mut Kernel, x: Expr, most: i64) -> Predicate {
        let most = k.constant(most);
        Predicate::of(k, x, Cmp::Lt, most)
    }
    vec![
        ("i & 1", counted(|k, i| U32::index(k, i).and(k, 1).lt(k, 1))),
        ("i & 2", counted(|k, i| U32::index(k, i).and(k, 2).lt(k, 2))),
        (
            "i & 12",
            counted(|k, i| U32::index(k, i).and(k, 12).lt(k, 8)),
        ),
        (
            "i >> 1",
            counted(|k, i| U32::index(k, i).shr(k, 1).lt(k, 3)),
        ),
        (
            "i / 3",
            counted(|k, i| {
                let x = k.div(i, 3);
                below(k, x, 2)
            }),
        ),
        (
            "i % 3",
            counted(|k, i| {
                let x = k.rem(i, 3);
                below(k, x, 1)
            }),
        ),
        (
            "i ^ 1",
            counted(|k, i| {
                let one = k.constant(1);
                let x = k.xor(i, one);
                below(k, x, 4)
            }),
        ),
        (
            "3·i & 4",
            counted(|k, i| {
                let x = k.scale(i, 3);
                U32::index(k, x).and(k, 4).lt(k, 4)
            }),
        ),
        (
            "(i + n) & 1",
            counted(|k, i| {
                let n = k.size("shift", 100);
                let x = k.add(i, n);
                let x = k.rem(x, 2);
                below(k, x, 1)
            }),
        ),
        (
            "i·n",
            counted(|k, i| {
                let n = k.size("factor", 100);
                let x = k.mul(i, n);
                below(k, x, 50)
            }),
        ),
        (
            "min(i, 5)",
            counted(|k, i| S32::index(k, i).min(k, 5).lt(k, 5)),
        ),
        (
            "max(i, 5)",
            counted(|k, i| S32::index(k, i).max(k, 5).lt(k, 6)),
        ),
        (
            "i as a value, times an argument",
            counted(|k, i| {
                let a: S32 = k.argument("a");
                S32::index(k, i).mul(k, a).lt(k, 9)
            }),
        ),
        (
            "i or an argument",
            counted(|k, i| {
                let a: S32 = k.argument("a");
                let p = below(k, i, 4);
                let i = S32::index(k, i);
                p.select(k, i, a).lt(k, 3)
            }),
        ),
    ]
}

#[test]
fn what_is_known_of_a_counter_is_known_of_its_iteration() -> Result {
    for (name, derive) in derived() {
        let right = by_counter(true, &*derive)?.build(ARCH);
        assert!(right.is_ok(), "{name}: {:?}", right.err());
        let error = refusal(by_counter(false, &*derive)?);
        assert!(
            matches!(error.code(), "race" | "undefined"),
            "{name}: {error}"
        );
    }
    Ok(())
}

#[test]
fn what_is_known_of_an_outer_counter_ends_with_its_iteration() -> Result {
    for (name, derive) in derived() {
        for barrier in [true, false] {
            // The predicate is of the outer counter, and asked in the inner loop.
            let (mut k, [x, y, put, take]) = shares()?;
            let sums = k.fragment_of(&x, 0.0)?;
            let [rounds, steps] = ["rounds", "steps"].map(|name| k.size(name, 100));
            k.copy(&x, &put)?;
            k.barrier();
            k.for_loop("round", 0, 1, rounds, |k, round| {
                k.for_loop("step", 0, 1, steps, |k, _| {
                    let p = derive(k, round);
                    read_or_store(k, p, &sums, [&x, &put, &take])
                })?;
                if barrier {
                    k.barrier();
                }
                Done::Ok(())
            })?;
            k.store_fragment(&y, &sums)?;
            match k.build(ARCH) {
                Ok(_) => assert!(barrier, "{name}"),
                Err(e) => assert!(
                    !barrier && matches!(e.code(), "race" | "undefined"),
                    "{name}: {e}"
                ),
            }
        }
    }
    Ok(())
}

/// A barrier under each of two predicates, between a store and a load of another thread.
fn under_two(predicates: &dyn Fn(&mut Kernel) -> [Predicate; 2]) -> Result<Kernel> {
    through_shared(|k| {
        for p in predicates(k) {
            barrier_when(k, p);
        }
    })
}

#[test]
fn integers_wrap_around() -> Result {
    fn size(k: &mut Kernel, bits: u32) -> Expr {
        k.size("m", (1_i64 << bits) - 1)
    }
    fn below(k: &mut Kernel, x: Expr, n: i64) -> Predicate {
        let n = k.constant(n);
        Predicate::of(k, x, Cmp::Lt, n)
    }
    let all: Vec<(&str, bool, Box<Two>)> = vec![
        (
            "a size of 31 bits as a signed value",
            true,
            two(move |k| {
                let m = size(k, 31);
                [S32::index(k, m).ge(k, 5), below(k, m, 5)]
            }),
        ),
        (
            "a size of 32 bits as a signed value",
            false,
            two(move |k| {
                let m = size(k, 32);
                [S32::index(k, m).ge(k, 5), below(k, m, 5)]
            }),
        ),
        (
            "a product of sizes, cut to 32 bits",
            false,
            two(move |k| {
                let m = size(k, 20);
                let square = k.mul(m, m);
                [S32::index(k, square).ge(k, 5), below(k, square, 5)]
            }),
        ),
        (
            "a difference of unsigned values, not below 0",
            false,
            two(|k| {
                let m: U32 = k.argument("m");
                let d = m.sub(k, 500).max(k, 0);
                [d.le(k, 500), m.gt(k, 1000)]
            }),
        ),
        (
            "a difference of signed values, not below 0",
            true,
            two(|k| {
                let m: S32 = k.argument("m");
                let m = m.max(k, -1000);
                let d = m.sub(k, 500).max(k, 0);
                [d.le(k, 500), m.gt(k, 1000)]
            }),
        ),
        (
            "a difference of any signed values",
            false,
            two(|k| {
                let m: S32 = k.argument("m");
                let d = m.sub(k, 500).max(k, 0);
                [d.le(k, 500), m.gt(k, 1000)]
            }),
        ),
        (
            "a sum that may pass the greatest number",
            false,
            two(|k| {
                let m: S32 = k.argument("m");
                let next = m.add(k, 1);
                [next.gt(k, 5), m.lt(k, 5)]
            }),
        ),
        (
            "the smaller of unsigned values",
            true,
            two(|k| {
                let m: U32 = k.argument("m");
                let least = m.min(k, 7);
                [least.lt(k, 8), least.gt(k, 100)]
            }),
        ),
        (
            "the smaller of a signed value",
            false,
            two(|k| {
                let m: S32 = k.argument("m");
                let least = m.min(k, 7);
                [least.ge(k, 0), least.gt(k, 100)]
            }),
        ),
        (
            "a product that wraps",
            false,
            two(|k| {
                let m: U32 = k.argument("m");
                let twice = m.mul(k, 2);
                [twice.ge(k, 10), m.lt(k, 5)]
            }),
        ),
        (
            "an opposite",
            true,
            two(|k| {
                let m: S32 = k.argument("m");
                [m.lt(k, -7), m.ge(k, -7)]
            }),
        ),
        (
            "an unsigned opposite",
            true,
            two(|k| {
                let m: U32 = k.argument("m");
                [m.lt(k, 0xffff_fff0), m.ge(k, 0xffff_fff0)]
            }),
        ),
    ];
    for (name, right, predicates) in all {
        match under_two(&*predicates)?.build(ARCH) {
            Ok(_) => assert!(right, "{name} is accepted"),
            Err(e) => assert!(
                !right && matches!(e.code(), "race" | "undefined" | "meaning"),
                "{name}: {e}"
            ),
        }
    }
    Ok(())
}

#[test]
fn a_comparison_is_of_its_type() -> Result {
    let compared = |which: usize| {
        move |k: &mut Kernel| -> [Predicate; 2] {
            let m: S32 = k.argument("m");
            let bits = m.bits(k);
            match which {
                // The same bits, by two types: -3 is below 5 as a signed number, and not as an unsigned one.
                0 => [bits.lt(k, 5), m.ge(k, 5)],
                1 => [m.lt(k, 5), bits.as_s32(k).ge(k, 5)],
                2 => [bits.lt(k, 5), bits.ge(k, 5)],
                3 => [bits.lt(k, 5), bits.ge(k, 6)],
                4 => [m.lt(k, 5), m.ge(k, 6)],
                // Literals at the ends of their types.
                5 => [bits.lt(k, u32::MAX), bits.ge(k, u32::MAX)],
                6 => [m.lt(k, -1), m.ge(k, -1)],
                7 => [m.gt(k, i32::MIN), m.le(k, i32::MIN)],
                8 => [bits.gt(k, 0x8000_0000), m.le(k, i32::MIN)],
                // A float's bits are not its value.
                _ => {
                    let f: F32 = k.argument("f");
                    [f.bits(k).as_s32(k).lt(k, 0), f.ge(k, 0.0)]
                }
            }
        }
    };
    for (which, right) in [
        (0, false),
        (1, true),
        (2, true),
        (3, false),
        (4, false),
        (5, true),
        (6, true),
        (7, true),
        (8, false),
        (9, false),
    ] {
        match under_two(&compared(which))?.build(ARCH) {
            Ok(_) => assert!(right, "{which}"),
            Err(e) => {
                let code = matches!(e.code(), "race" | "undefined" | "divergent");
                assert!(!right && code, "{which}: {e}");
            }
        }
    }
    Ok(())
}

#[test]
fn predicates_of_data_are_of_their_type_operands_and_numbers() -> Result {
    let floats = |k: &mut Kernel| -> [F32; 2] { ["f", "g"].map(|name| k.argument(name)) };
    let all: Vec<(&str, bool, Box<Two>)> = vec![
        (
            "a predicate and its negation",
            true,
            two(move |k| {
                let [f, g] = floats(k);
                let p = f.lt(k, g);
                [p, p.not()]
            }),
        ),
        (
            "the same comparison twice",
            true,
            two(move |k| {
                let [f, g] = floats(k);
                [f.le(k, g), f.le(k, g).not()]
            }),
        ),
        (
            "equal, and not equal or NaN",
            true,
            two(move |k| {
                let [f, g] = floats(k);
                [f.eq(k, g), f.ne(k, g)]
            }),
        ),
        (
            "not equal, and not not equal",
            true,
            two(move |k| {
                let [f, g] = floats(k);
                [f.ne(k, g), f.ne(k, g).not()]
            }),
        ),
        (
            "equal, and below or above",
            false,
            two(move |k| {
                let [f, g] = floats(k);
                let (below, above) = (f.lt(k, g), f.gt(k, g));
                [f.eq(k, g), below.or(k, above)]
            }),
        ),
        (
            "below, and at least",
            false,
            two(move |k| {
                let [f, g] = floats(k);
                [f.lt(k, g), f.ge(k, g)]
            }),
        ),
        (
            "at most, and above",
            false,
            two(move |k| {
                let [f, g] = floats(k);
                [f.le(k, g), f.gt(k, g)]
            }),
        ),
        (
            "of other operands",
            false,
            two(move |k| {
                let [f, g] = floats(k);
                [f.lt(k, g), g.lt(k, f).not()]
            }),
        ),
        (
            "of another literal",
            false,
            two(move |k| {
                let [f, _] = floats(k);
                [f.lt(k, 1.0), f.lt(k, 2.0).not()]
            }),
        ),
        (
            "of a variable that is set in between",
            false,
            two(move |k| {
                let [f, g] = floats(k);
                let v = k.variable(f);
                let p = v.get(k).lt(k, 1.0);
                v.set(k, g);
                [p, v.get(k).lt(k, 1.0).not()]
            }),
        ),
        (
            "of a variable that is not set in between",
            true,
            two(move |k| {
                let [f, _] = floats(k);
                let v = k.variable(f);
                [v.get(k).lt(k, 1.0), v.get(k).lt(k, 1.0).not()]
            }),
        ),
        (
            "of an integer variable that is set in between",
            false,
            two(move |k| {
                let (a, b): (S32, S32) = (k.argument("a"), k.argument("b"));
                let v = k.variable(a);
                let p = v.get(k).lt(k, 1);
                v.set(k, b);
                [p, v.get(k).ge(k, 1)]
            }),
        ),
    ];
    for (name, right, predicates) in all {
        match under_two(&*predicates)?.build(ARCH) {
            Ok(_) => assert!(right, "{name} is accepted"),
            Err(e) => assert!(
                !right && matches!(e.code(), "race" | "undefined"),
                "{name}: {e}"
            ),
        }
    }
    // Nothing is known of a variable that a loop may have set, not even that all threads have the same.
    let error = refusal(through_shared(|k| {
        let ([f, g], n) = (floats(k), k.size("rounds", 10));
        let held = k.variable(f);
        let p = held.get(k).lt(k, 1.0);
        barrier_when(k, p);
        let body = |k: &mut Kernel, _| {
            held.set(k, g);
            Done::Ok(())
        };
        k.for_loop("round", 0, 1, n, body).expect("a loop");
        let p = held.get(k).lt(k, 1.0).not();
        barrier_when(k, p);
    })?);
    assert_eq!(error.code(), "divergent", "{error}");
    // Threads may differ in a comparison of an argument with data, or with the thread's index.
    let error = refusal(through_shared(|k| {
        let a: S32 = k.argument("a");
        let thread = k.thread();
        let thread = S32::index(k, thread);
        let p = a.lt(k, thread);
        barrier_when(k, p);
    })?);
    assert_eq!(error.code(), "divergent", "{error}");
    Ok(())
}

/// Where a whole-warp instruction stands.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stands {
    Free,
    Lanes,
    Warps,
    Data,
    Argument,
    AfterExit,
    AfterLoop,
    AfterBreak,
    InBrokenLoop,
    /// In a loop that some threads leave under a branch, behind the first iteration.
    LeftApart,
    /// In a loop, ahead of an exit of some threads.
    AheadOfExit,
    /// Behind an exit of all threads that some come to.
    ExitUnderBranch,
}

/// An instruction that the lanes of a warp execute together.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Together {
    Product,
    Matrices,
    Shuffle,
}

fn together(threads: u32, stands: Stands, what: Together) -> Result<Kernel> {
    let mut k = Kernel::new("together", threads);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::X, n, threads.into())?;
    let (thread, lane) = (k.thread(), k.lane());
    let one = layout(&format!("({threads},1):(1,0)"));
    let [a, b] = [("a", "(16,16):(16,1)"), ("b", "(8,16):(16,1)")]
        .map(|(name, tile)| k.shared(name, Element::F16, &swizzled(tile)));
    let (a, b) = (a?, b?);
    let [x, y] = [x, y].map(|v| {
        v.tile(&mut k, &[threads.into()], &[block])?
            .partition(&mut k, &one, thread)
    });
    let (x, y) = (x?, y?);
    let value = k.load_fragment(&x)?;
    // A is there for every thread.
    let (side, zero) = (k.constant(16), k.constant(0));
    let from = k.input("a0", Element::F16, &[side, side]);
    let first = threads.min(32);
    let fill = layout(&format!("({first},{}):(1,{first})", 256 / first));
    let filler = if threads > 32 { lane } else { thread };
    let most = k.constant(first.into());
    let filling = Predicate::of(&mut k, thread, Cmp::Lt, most);
    k.when(filling, |k| {
        let from = from.tile(k, &[16, 16], &[zero, zero])?;
        let from = from.partition(k, &fill, filler)?;
        let to = a.partition(k, &fill, filler)?;
        k.copy(&from, &to)
    })?;
    k.barrier();
    let single = value.thread_values::<f32>(&mut k)?[0];
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(1,1,1):(0,0,0)"))?;
    let act: Box<dyn FnOnce(&mut Kernel) -> Done> = match what {
        Together::Product => {
            let sums = k.accumulators(&mma, [16, 8], lane)?;
            let left = a.partition_a(&mut k, &mma, lane)?;
            let right = b.partition_b(&mut k, &mma, lane)?;
            let [left, right] = [left, right].map(|share| {
                let zeros = k.fragment_of(&share, 0.0)?;
                zeros.convert(&mut k, Element::F16)
            });
            let (left, right) = (left?, right?);
            Box::new(move |k| k.gemm(&mma, &left, &right, &sums))
        }
        Together::Matrices => {
            let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, tilewright::Operand::A)?;
            let matrices = a.partition_s(&mut k, &copy, lane)?;
            Box::new(move |k| k.load_fragment(&matrices).map(drop))
        }
        Together::Shuffle => Box::new(move |k| {
            let _ = single.shuffle(k, Shuffle::Butterfly, 1);
            Ok(())
        }),
    };
    // What threads that exit have stored is not what these are about.
    let stored = matches!(stands, Stands::AheadOfExit | Stands::ExitUnderBranch);
    if stored {
        k.store_fragment(&y, &value)?;
    }
    let guard: Option<Predicate> = match stands {
        Stands::Free => None,
        Stands::Lanes => {
            let half = k.constant(16);
            Some(Predicate::of(&mut k, lane, Cmp::Lt, half))
        }
        Stands::Warps => {
            let half = k.constant(32);
            Some(Predicate::of(&mut k, thread, Cmp::Lt, half))
        }
        Stands::Data => Some(single.lt(&mut k, 0.0)),
        Stands::Argument => {
            let a: S32 = k.argument("some");
            Some(a.gt(&mut k, 0))
        }
        Stands::AfterExit => {
            let some = k.size("some", 1000);
            let p = Predicate::of(&mut k, thread, Cmp::Ge, some);
            k.exit_when(p);
            None
        }
        Stands::AfterLoop => {
            let some = k.size("some", 1000);
            k.for_loop("round", 0, 1, some, |_, _| Done::Ok(()))?;
            None
        }
        Stands::AfterBreak => {
            let (sign, some): (S32, _) = (k.argument("sign"), k.size("some", 1000));
            k.for_loop("round", 0, 1, some, |k, _| {
                let p = sign.lt(k, 0);
                k.break_when(p);
                Done::Ok(())
            })?;
            None
        }
        Stands::InBrokenLoop | Stands::LeftApart | Stands::AheadOfExit => {
            let sign: S32 = k.argument("sign");
            Some(sign.lt(&mut k, 0))
        }
        Stands::ExitUnderBranch => {
            let sign: S32 = k.argument("sign");
            let (p, some) = (sign.lt(&mut k, 0), single.lt(&mut k, 0.0));
            k.when(some, |k| {
                k.exit_when(p);
                Done::Ok(())
            })?;
            None
        }
    };
    let some_threads = single.lt(&mut k, 1.0);
    match guard {
        Some(p) if stands == Stands::LeftApart => {
            let some = k.size("some", 1000);
            k.for_loop("round", 0, 1, some, |k, _| {
                act(k)?;
                k.when(some_threads, |k| {
                    k.break_when(p);
                    Done::Ok(())
                })
            })?;
        }
        Some(_) if stands == Stands::AheadOfExit => {
            let some = k.size("some", 1000);
            k.for_loop("round", 0, 1, some, |k, _| {
                act(k)?;
                k.exit_when(some_threads);
                Done::Ok(())
            })?;
        }
        Some(p) if stands == Stands::InBrokenLoop => {
            let some = k.size("some", 1000);
            k.for_loop("round", 0, 1, some, |k, _| {
                k.break_when(p);
                act(k)
            })?;
        }
        Some(p) => k.when(p, act)?,
        None => act(&mut k)?,
    }
    if !stored {
        k.store_fragment(&y, &value)?;
    }
    Ok(k)
}

#[test]
fn instructions_of_whole_warps_take_whole_warps() -> Result {
    use Stands::{
        AfterBreak, AfterExit, AfterLoop, AheadOfExit, Argument, Data, ExitUnderBranch, Free,
        InBrokenLoop, Lanes, LeftApart, Warps,
    };
    for what in [Together::Product, Together::Matrices, Together::Shuffle] {
        for (threads, stands, right) in [
            (32, Free, true),
            (64, Free, true),
            (64, Warps, true),
            (64, AfterLoop, true),
            (64, Argument, true),
            (64, Lanes, false),
            (64, Data, false),
            (64, AfterExit, false),
            (64, AfterBreak, true),
            (64, InBrokenLoop, true),
            (64, LeftApart, false),
            (64, AheadOfExit, false),
            (64, ExitUnderBranch, false),
            (32, Lanes, false),
            (48, Free, false),
            (48, Warps, true),
            (96, Free, true),
        ] {
            let name = format!("{threads} threads, {stands:?}, {what:?}");
            match together(threads, stands, what)?.build(ARCH) {
                Ok(_) => assert!(right, "{name}"),
                Err(e) => assert!(
                    !right && matches!(e.code(), "partial_warp" | "coverage" | "undecided"),
                    "{name}: {e}"
                ),
            }
        }
    }
    for stands in [AheadOfExit, ExitUnderBranch] {
        let error = refusal(together(64, stands, Together::Shuffle)?);
        assert_eq!(error.code(), "partial_warp", "{stands:?}: {error}");
    }
    let error = refusal(together(16, Free, Together::Shuffle)?);
    assert_eq!(error.code(), "partial_warp");
    let wanted = "a shuffle is an instruction of whole warps";
    assert!(without_lines(&error).contains(wanted), "{error}");
    // Operands of matrix instructions are shares of a warp, which such a block does not have.
    for what in [Together::Product, Together::Matrices] {
        assert!(together(16, Free, what).is_err(), "{what:?}");
    }
    Ok(())
}

/// Functions of a product are called in whole warps, too.
#[test]
fn epilogue_functions_keep_warps_whole() -> Result {
    type Emitted = std::result::Result<(), PlanError>;
    let emitted = |apart: bool| -> Emitted {
        let function = Function::new("neighbours", move |k, c| {
            let x = c.values::<f32>(k)?[0];
            let give = |k: &mut Kernel| -> Emitted {
                let _ = x.shuffle(k, Shuffle::Butterfly, 1);
                Ok(())
            };
            if apart {
                let p = x.lt(k, 0.0);
                k.when(p, give)
            } else {
                give(k)
            }
        });
        let plan = named("sgemm-maxas-64").with_epilogue(function)?;
        plan.emit(Operands::ALL[0], ARCH).map(drop)
    };
    emitted(false)?;
    let error = without_lines(&emitted(true).expect_err("by data"));
    let wanted = "a shuffle is an instruction of whole warps";
    assert!(error.contains(wanted), "{error}");
    Ok(())
}

/// A transpose of `threads` elements by `threads` threads, rows of four: the last warp may be a partial one.
fn through_columns(threads: i64) -> Result<Proven> {
    let mut k = Kernel::new("columns", threads as u32);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::X, n, threads)?;
    let pitch = swizzled(&format!("{threads}:32"));
    let tile = k.shared("tile", Element::F32, &pitch)?;
    let (thread, one) = (k.thread(), layout(&format!("({threads},1):(1,0)")));
    let put = tile.partition(&mut k, &one, thread)?;
    let [x, y] = [x, y].map(|v| {
        v.tile(&mut k, &[threads], &[block])?
            .partition(&mut k, &one, thread)
    });
    k.copy(&x?, &put)?;
    k.barrier();
    k.copy(&put, &y?)?;
    Ok(k.build(ARCH)?)
}

#[test]
fn partial_warps_cost_what_they_cost() -> Result {
    for (threads, most) in [(8, 8), (16, 16), (31, 31), (48, 32), (33, 32), (80, 32)] {
        let kernel = through_columns(threads)?;
        let proven: Vec<u32> = kernel.accesses().iter().map(|a| a.wavefronts).collect();
        assert_eq!(proven, [most; 2], "{threads} threads");
        let x: Vec<f32> = (0..2 * threads).map(|i| i as f32).collect();
        let outcome = run(
            &kernel,
            On::Emulator,
            [
                ("n", Arg::from(2 * threads as u32)),
                ("x", Arg::input(&x)),
                ("y", Arg::output::<f32>(x.len())),
            ],
        )?;
        outcome.assert_clean();
        outcome.assert_counted_as_proven();
    }
    Ok(())
}

#[test]
fn an_element_is_stored_once() -> Result {
    // A second store of one thread's own element, by another map, beside the store of every element.
    let twice = |second: &str, only: Option<i64>, other_side: bool| -> Result<Kernel> {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
        let second = layout(second);
        let [first, again] = [&one, &second].map(|by| y.partition(&mut k, by, thread));
        let (first, again) = (first?, again?);
        let x = x.partition(&mut k, &one, thread)?;
        if other_side {
            let (some, five) = (k.size("some", 10), k.constant(5));
            let p = Predicate::of(&mut k, some, Cmp::Lt, five);
            k.when_else(p, |k| k.copy(&x, &first), |k| k.copy(&x, &first))?;
        } else {
            k.copy(&x, &first)?;
        }
        match only {
            Some(only) => {
                let only = k.constant(only);
                let p = Predicate::of(&mut k, thread, Cmp::Eq, only);
                k.when(p, |k| k.copy(&x, &again))?;
            }
            None => k.copy(&x, &again)?,
        }
        Ok(k)
    };
    for other_side in [false, true] {
        for (second, only) in [
            ("(128,1):(1,0)", None),
            ("((64,2),1):((2,1),0)", Some(0)),
            ("((64,2),1):((2,1),0)", Some(127)),
            ("((2,64),1):((64,1),0)", Some(0)),
            ("(128,1):(1,0)", Some(5)),
            ("((64,2),1):((2,1),0)", Some(3)),
        ] {
            let error = refusal(twice(second, only, other_side)?);
            assert_eq!(error.code(), "coverage", "{second} {only:?}: {error}");
        }
    }
    // By a wider vector: threads have pairs, and thread 0 its first element once more.
    let mut k = Kernel::new("pairs", 64);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let (block, thread, zero) = (k.tiles(Axis::X, n, 128)?, k.thread(), k.constant(0));
    let [pairs, apart] = [layout("(64,2):(2,1)"), layout("(64,2):(1,64)")];
    let tile = |k: &mut Kernel, v: &View, by: &Layout| {
        v.tile(k, &[128], &[block])?.partition(k, by, thread)
    };
    let (from, to) = (tile(&mut k, &x, &pairs)?, tile(&mut k, &y, &pairs)?);
    let (from, to) = (from.vectors(&k, 2)?, to.vectors(&k, 2)?);
    k.copy(&from, &to)?;
    let first = Predicate::of(&mut k, thread, Cmp::Eq, zero);
    k.when(first, |k| {
        let (from, to) = (tile(k, &x, &apart)?, tile(k, &y, &apart)?);
        k.copy(&from, &to)
    })?;
    assert_eq!(refusal(k).code(), "coverage");
    Ok(())
}

#[test]
fn inputs_are_not_stored_to() -> Result {
    for inside in [false, true] {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
        let [x, y] = [x, y].map(|v| v.partition(&mut k, &one, thread));
        let (x, y) = (x?, y?);
        k.copy(&x, &y)?;
        let store = |k: &mut Kernel| {
            let value = k.load_fragment(&x)?;
            k.store_fragment(&x, &value)
        };
        if inside {
            let (some, five) = (k.size("some", 10), k.constant(5));
            let p = Predicate::of(&mut k, some, Cmp::Lt, five);
            k.when(p, store)?;
        } else {
            store(&mut k)?;
        }
        let error = refusal(k);
        assert_eq!(error.code(), "input", "{error}");
        assert_eq!(
            without_lines(&error),
            "write x: `x` is an input, which is read by a cache that sees no stores: declare it an output"
        );
    }
    Ok(())
}

/// What the builder takes as a loop (`sealed::loops_end` has what it refuses) ends, and counts as it says.
#[test]
fn loops_count_to_their_limits() -> Result {
    for (start, step, most, rounds) in [
        (0, 1, 1000, 37),
        (0, 1, 1000, 0),
        (0, 32, 1 << 30, 65),
        (5, 3, 1000, 20),
        (5, 3, 1000, 4),
        (50, 3, 1000, 40),
        (0, 1, i64::from(u32::MAX) - 1, 9),
        (0, 1 << 31, 1 << 30, 3),
        (7, i64::from(u32::MAX) - 10, 3, 2),
    ] {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
        let [x, y] = [x, y].map(|v| v.partition(&mut k, &one, thread));
        let (x, y) = (k.load_fragment(&x?)?, y?);
        let n = k.size("rounds", most);
        let sum = k.variable(U32::from(0));
        k.for_loop("round", start, step, n, |k, i| {
            let i = U32::index(k, i);
            let more = sum.get(k).add(k, i).add(k, 1);
            sum.set(k, more);
            Done::Ok(())
        })?;
        let sum = sum.get(&mut k).to_f32(&mut k);
        let all = x.map(&mut k, |k, x| x.add(k, sum))?;
        k.store_fragment(&y, &all)?;
        let kernel = k.build(ARCH)?;
        let outcome = run(
            &kernel,
            On::Emulator,
            [
                ("n", Arg::from(3_u32)),
                ("x", Arg::input(&[0.0_f32; 3])),
                ("y", Arg::output::<f32>(3)),
                ("rounds", Arg::from(rounds as u32)),
            ],
        )?;
        outcome.assert_clean();
        let right: i64 = (start..rounds).step_by(step as usize).map(|i| i + 1).sum();
        assert_eq!(outcome.get::<f32>("y")?, [right as f32; 3]);
    }
    Ok(())
}

#[test]
fn asynchronous_copies_of_an_output_are_waited_for() -> Result {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Waits {
        Before,
        ForAll,
        Behind,
        Never,
        ForOlder,
        ForOlderOnSomePath,
        OnSomePath,
        InLoop,
    }
    let kernel = |waits: Waits, other: bool| -> Result<Kernel> {
        let mut k = Kernel::new("in_place", 128);
        let (rows, cols) = (k.size("rows", 1 << 20), k.constant(32));
        let y = k.output("y", Element::F32, &[rows, cols]);
        let (i, zero, thread) = (k.tiles(Axis::X, rows, 16)?, k.constant(0), k.thread());
        let (some, five) = (k.size("some", 10), k.constant(5));
        let (threads, values) = (layout("(16,8):(8,1)"), layout("(1,4):(0,1)"));
        let copy = TiledCopy::new(atoms::CP_ASYNC_16.recast(32)?, &threads, &values)?;
        let tile = k.shared("tile", Element::F32, &swizzled("(16,32):(32,1)"))?;
        // Threads along a row, as they copy, or along a column.
        let share = layout(if other {
            "((16,8),4):((1,64),16)"
        } else {
            "((8,16),4):((64,1),16)"
        });
        let y = y.tile(&mut k, &[16, 32], &[i, zero])?;
        let to = y.partition(&mut k, &share, thread)?.vectors(&k, 4)?;
        let from = y.partition_s(&mut k, &copy, thread)?;
        let into = tile.partition_d(&mut k, &copy, thread)?;
        k.copy(&from, &into)?;
        k.commit_group();
        let sometimes = Predicate::of(&mut k, some, Cmp::Lt, five);
        match waits {
            Waits::Before => k.wait_group(0),
            Waits::ForAll => k.wait_all(),
            Waits::ForOlder => k.wait_group(1),
            Waits::ForOlderOnSomePath => {
                k.when(sometimes, |k| {
                    k.commit_group();
                    Done::Ok(())
                })?;
                k.wait_group(1);
            }
            Waits::OnSomePath => {
                k.when(sometimes, |k| {
                    k.wait_group(0);
                    Done::Ok(())
                })?;
            }
            Waits::InLoop => {
                k.for_loop("round", 0, 1, some, |k, _| {
                    k.wait_group(0);
                    Done::Ok(())
                })?;
            }
            Waits::Behind | Waits::Never => {}
        }
        k.barrier();
        let zeros = k.fragment_of(&to, 0.0)?;
        k.store_fragment(&to, &zeros)?;
        if waits == Waits::Behind {
            k.wait_group(0);
        }
        Ok(k)
    };
    let error = kernel(Waits::Before, false)?.build(Arch(75));
    let error = error.expect_err("no cp.async").to_string();
    assert!(error.contains("sm_80 is the first to have"), "{error}");
    for (waits, right) in [
        (Waits::Before, true),
        (Waits::ForAll, true),
        (Waits::Behind, false),
        (Waits::Never, false),
        (Waits::ForOlder, false),
        (Waits::ForOlderOnSomePath, false),
        (Waits::OnSomePath, false),
        (Waits::InLoop, false),
    ] {
        match kernel(waits, false)?.build(ARCH) {
            Ok(_) => assert!(right, "{waits:?}"),
            Err(e) => assert!(!right && e.code() == "overwritten", "{waits:?}: {e}"),
        }
        // A thread knows of its own copies alone.
        let error = refusal(kernel(waits, true)?);
        assert_eq!(error.code(), "overwritten", "{waits:?}: {error}");
    }
    Ok(())
}

/// A grid has no block where the size that it tiles is 0: what the output has then is stored by none.
#[test]
fn outputs_without_blocks_are_empty() -> Result {
    type Extents = fn(&mut Kernel, Expr) -> Vec<Expr>;
    let cases: [(&str, bool, Extents); 7] = [
        ("n", true, |_, n| vec![n]),
        ("2n", true, |k, n| vec![k.scale(n, 2)]),
        ("16, n", true, |k, n| vec![k.constant(16), n]),
        ("n + 1", false, |k, n| {
            let one = k.constant(1);
            vec![k.add(n, one)]
        }),
        ("16", false, |k, _| vec![k.constant(16)]),
        ("16, n + 1", false, |k, n| {
            let one = k.constant(1);
            vec![k.constant(16), k.add(n, one)]
        }),
        ("another size", false, |k, _| vec![k.size("m", 8)]),
    ];
    for (name, right, extents) in cases {
        for most in [1, 8] {
            let mut k = Kernel::new("few", 16);
            let n = k.size("n", most);
            let extents = extents(&mut k, n);
            let _ = k.tiles(Axis::X, n, 16)?;
            let (zero, thread) = (k.constant(0), k.thread());
            let y = k.output("y", Element::F32, &extents);
            let (tile, by): (&[i64], _) = match extents.len() {
                1 => (&[16], layout("(16,1):(1,0)")),
                _ => (&[16, 16], layout("(16,16):(16,1)")),
            };
            let y = y.tile(&mut k, tile, &vec![zero; extents.len()])?;
            let y = y.partition(&mut k, &by, thread)?;
            let ones = k.fragment_of(&y, 1.0)?;
            k.store_fragment(&y, &ones)?;
            match k.build(ARCH) {
                Ok(_) => assert!(right, "{name}, n at most {most}"),
                Err(e) => {
                    let e = e.to_string();
                    assert!(
                        !right && e.contains("the grid has no block"),
                        "{name}, n at most {most}: {e}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// An output of a constant size beyond all memory is refused for what nobody stores of it.
#[test]
fn outputs_of_any_constant_size_are_judged() -> Result {
    for extents in [[1 << 20, 1 << 19], [1 << 31, 1 << 31]] {
        let mut k = Kernel::new("huge", 32);
        let extents = extents.map(|n| k.constant(n));
        let (zero, thread) = (k.constant(0), k.thread());
        let y = k.output("y", Element::F32, &extents);
        let y = y.tile(&mut k, &[32, 1], &[zero, zero])?;
        let y = y.partition(&mut k, &layout("(32,1):(1,0)"), thread)?;
        let ones = k.fragment_of(&y, 1.0)?;
        k.store_fragment(&y, &ones)?;
        let e = refusal(k).to_string();
        assert!(e.contains("no thread stores element"), "{e}");
    }
    Ok(())
}

/// What a choice may be is wider than each of its sides: −4 to 2³¹ has no 32-bit type, though both sides have one.
#[test]
fn a_choice_has_room_for_both_sides() -> Result {
    type Side = fn(&mut Kernel, Expr) -> Expr;
    type Values = fn(i64) -> [i64; 2];
    let less: Side = |k, n| {
        let four = k.constant(4);
        k.sub(n, four)
    };
    let sides: [(Side, Side, Values); 3] = [
        (|_, n| n, less, |n| [n, n - 4]),
        (less, |_, n| n, |n| [n - 4, n]),
        (less, |k, n| k.scale(n, -1), |n| [n - 4, -n]),
    ];
    for (then, otherwise, values) in sides {
        let mut k = Kernel::new("choice", 32);
        let [n, m] = ["n", "m"].map(|name| k.size(name, 1 << 31));
        let (zero, thread, whole) = (k.constant(0), k.thread(), k.constant(32));
        let y = k.output("y", Element::F32, &[whole]);
        let y = y.tile(&mut k, &[32], &[zero])?;
        let y = y.partition(&mut k, &layout("(32,1):(1,0)"), thread)?;
        let (then, otherwise) = (then(&mut k, n), otherwise(&mut k, n));
        let chosen = k.choose(m, Cmp::Ne, zero, then, otherwise);
        let negative = Predicate::of(&mut k, chosen, Cmp::Lt, zero);
        let ones = k.fragment_of(&y, 1.0)?;
        let signs = ones.map(&mut k, |k, one| negative.select(k, one, 2.0))?;
        k.store_fragment(&y, &signs)?;
        let kernel = k.build(ARCH)?;
        for n in [0_u32, 1, 4, 5, 1 << 31] {
            for m in [0_u32, 1, 1 << 31] {
                let args = [
                    ("n", Arg::from(n)),
                    ("m", Arg::from(m)),
                    ("y", Arg::output::<f32>(32)),
                ];
                let outcome = run(&kernel, On::Emulator, args)?;
                outcome.assert_clean();
                let value = values(n.into())[usize::from(m == 0)];
                let wanted = if value < 0 { 1.0 } else { 2.0 };
                assert_eq!(outcome.get::<f32>("y")?, [wanted; 32], "{n} {m}: {value}");
            }
        }
    }
    Ok(())
}
