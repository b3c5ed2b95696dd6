//! Kernels that are wrong, tried as an adversary would: each is refused, with the right one of its kind accepted beside it.

use super::{ARCH, Result, add, layout, refusal, swizzled, through_shared, vectors};
use std::sync::Arc;
use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Reg, Type};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::value::{F32, Predicate, S32, U32};
use tilewright::codegen::view::{Partition, View};
use tilewright::host::{Arg, On, run};
use tilewright::{Layout, TiledCopy, TiledMma, atoms};

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

/// An iteration reads what other threads have stored, or stores, by what is derived of the counter.
fn by_counter(barrier: bool, derive: &dyn Fn(&mut Kernel, Expr) -> Predicate) -> Result<Kernel> {
    let (mut k, [x, y, put, take]) = shares()?;
    let sums = k.fragment_of(&x, 0.0)?;
    let rounds = k.size("rounds", 1000);
    k.copy(&x, &put)?;
    k.barrier();
    let turn = k.open_loop("round", 0, 1, 1000);
    let p = derive(&mut k, turn.counter);
    k.begin_if(p, true);
    let other = k.load_fragment(&take)?;
    add(&mut k, &sums, &other)?;
    k.otherwise();
    k.copy(&x, &put)?;
    k.end_if();
    if barrier {
        k.barrier();
    }
    k.close_loop(&turn, rounds);
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
        let most = k.pool.constant(most);
        Predicate::of(k, x, Cmp::Lt, most)
    }
    vec![
        (
            "i & 1",
            counted(|k, i| {
                let x = k.pool.and(i, 1);
                below(k, x, 1)
            }),
        ),
        (
            "i & 2",
            counted(|k, i| {
                let x = k.pool.and(i, 2);
                below(k, x, 2)
            }),
        ),
        (
            "i & 12",
            counted(|k, i| {
                let x = k.pool.and(i, 12);
                below(k, x, 8)
            }),
        ),
        (
            "i >> 1",
            counted(|k, i| {
                let x = k.pool.shr(i, 1);
                below(k, x, 3)
            }),
        ),
        (
            "i / 3",
            counted(|k, i| {
                let x = k.pool.div(i, 3);
                below(k, x, 2)
            }),
        ),
        (
            "i % 3",
            counted(|k, i| {
                let x = k.pool.rem(i, 3);
                below(k, x, 1)
            }),
        ),
        (
            "i ^ 1",
            counted(|k, i| {
                let one = k.pool.constant(1);
                let x = k.pool.xor(i, one);
                below(k, x, 4)
            }),
        ),
        (
            "3·i & 4",
            counted(|k, i| {
                let x = k.pool.scale(i, 3);
                let x = k.pool.and(x, 4);
                below(k, x, 4)
            }),
        ),
        (
            "(i + n) & 1",
            counted(|k, i| {
                let n = k.size("shift", 100);
                let x = k.pool.add(i, n);
                let x = k.pool.and(x, 1);
                below(k, x, 1)
            }),
        ),
        (
            "i·n",
            counted(|k, i| {
                let n = k.size("factor", 100);
                let x = k.pool.mul(i, n);
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
            let outer = k.open_loop("round", 0, 1, 100);
            let inner = k.open_loop("step", 0, 1, 100);
            let p = derive(&mut k, outer.counter);
            k.begin_if(p, true);
            let other = k.load_fragment(&take)?;
            add(&mut k, &sums, &other)?;
            k.otherwise();
            k.copy(&x, &put)?;
            k.end_if();
            k.close_loop(&inner, steps);
            if barrier {
                k.barrier();
            }
            k.close_loop(&outer, rounds);
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
            k.begin_if(p, true);
            k.barrier();
            k.end_if();
        }
    })
}

#[test]
fn integers_wrap_around() -> Result {
    fn size(k: &mut Kernel, bits: u32) -> Expr {
        k.size("m", (1_i64 << bits) - 1)
    }
    fn below(k: &mut Kernel, x: Expr, n: i64) -> Predicate {
        let n = k.pool.constant(n);
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
                let square = k.pool.mul(m, m);
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

/// The same bits compared as two types, and literals that do not fit.
#[test]
fn a_comparison_is_of_its_type() -> Result {
    let compare = |types: [Type; 2], [a, b]: [i64; 2]| {
        through_shared(move |k| {
            let m: S32 = k.argument("m");
            let m = m.register(k);
            for (cmp, ty, with) in [(Cmp::Lt, types[0], a), (Cmp::Ge, types[1], b)] {
                let p = k.compare_value(cmp, ty, m, with, None);
                k.begin_if(p, true);
                k.barrier();
                k.end_if();
            }
        })
    };
    for ty in [Type::S32, Type::U32] {
        assert!(compare([ty; 2], [5, 5])?.build(ARCH).is_ok(), "{ty:?}");
        // 2^32 + 5 is 5.
        assert!(
            compare([ty; 2], [5, (1 << 32) + 5])?.build(ARCH).is_ok(),
            "{ty:?}"
        );
        let error = refusal(compare([ty; 2], [5, 6])?);
        assert!(matches!(error.code(), "race" | "undefined"), "{error}");
        let error = refusal(compare([ty; 2], [(1 << 32) + 5, 6])?);
        assert!(matches!(error.code(), "race" | "undefined"), "{error}");
    }
    // -3 is below 5 as a signed number, and not as an unsigned one.
    let error = refusal(compare([Type::U32, Type::S32], [5, 5])?);
    assert!(matches!(error.code(), "race" | "undefined"), "{error}");
    assert!(compare([Type::S32, Type::U32], [5, 5])?.build(ARCH).is_ok());
    Ok(())
}

#[test]
fn predicates_of_data_are_of_their_type_operands_and_numbers() -> Result {
    let floats = |k: &mut Kernel| -> [F32; 2] { ["f", "g"].map(|name| k.argument(name)) };
    let ordered = |k: &mut Kernel, a: F32, cmp: Cmp, b: F32| {
        let [a, b] = [a, b].map(|x| x.register(k));
        Predicate::held_by(k.compare_value(cmp, Type::F32, a, b, None)).expect("a predicate")
    };
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
            "equal, and not equal without NaN",
            false,
            two(move |k| {
                let [f, g] = floats(k);
                [ordered(k, f, Cmp::Eq, g), ordered(k, f, Cmp::Ne, g)]
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
    // A register of data that is compared in place, and written between.
    let error = refusal(through_shared(|k| {
        let [f, g] = ["f", "g"].map(|name| k.argument::<f32>(name));
        let (held, g) = (k.variable(f), g.register(k));
        let register = held.get(k).register(k);
        for cmp in [Cmp::Eq, Cmp::Neu] {
            let p = k.compare_value(cmp, Type::F32, register, 1.0f32, None);
            k.begin_if(p, true);
            k.barrier();
            k.end_if();
            k.set(Type::F32, register, g);
        }
    })?);
    assert!(matches!(error.code(), "race" | "undefined"), "{error}");
    // Threads may differ in a comparison of an argument with data, or with the thread's index.
    let error = refusal(through_shared(|k| {
        let a: S32 = k.argument("a");
        let thread = k.thread();
        let thread = S32::index(k, thread);
        let p = a.lt(k, thread);
        k.begin_if(p, true);
        k.barrier();
        k.end_if();
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
}

fn matrix_product(threads: u32, stands: Stands, product: bool) -> Result<Kernel> {
    let mut k = Kernel::new("mma", threads);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::X, n, threads.into())?;
    let (thread, lane, one) = (
        k.thread(),
        k.lane(),
        layout(&format!("({threads},1):(1,0)")),
    );
    let a = k.shared("a", Element::F16, &swizzled("(16,16):(16,1)"))?;
    let [x, y] = [x, y].map(|v| {
        v.tile(&mut k, &[threads.into()], &[block])?
            .partition(&mut k, &one, thread)
    });
    let (x, y) = (x?, y?);
    let value = k.load_fragment(&x)?;
    // A is there for every thread.
    let (side, zero) = (k.pool.constant(16), k.pool.constant(0));
    let from = k.input("a0", Element::F16, &[side, side]);
    let first = threads.min(32);
    let fill = layout(&format!("({first},{}):(1,{first})", 256 / first));
    let (most, filler) = (
        k.pool.constant(first.into()),
        if threads > 32 { lane } else { thread },
    );
    let filling = k.compare(Cmp::Lt, thread, most);
    k.begin_if(filling, false);
    let from = from.tile(&mut k, &[16, 16], &[zero, zero])?;
    let from = from.partition(&mut k, &fill, filler)?;
    let to = a.partition(&mut k, &fill, filler)?;
    k.copy(&from, &to)?;
    k.end_if();
    k.barrier();
    let atom = Arc::new(atoms::MMA_M16N8K16_F16);
    let guard: Option<Predicate> = match stands {
        Stands::Free => None,
        Stands::Lanes => {
            let half = k.pool.constant(16);
            Some(Predicate::of(&mut k, lane, Cmp::Lt, half))
        }
        Stands::Warps => {
            let half = k.pool.constant(32);
            Some(Predicate::of(&mut k, thread, Cmp::Lt, half))
        }
        Stands::Data => {
            let mut p = None;
            value.map(&mut k, |k, x| {
                p = Some(x.lt(k, 0.0));
                x
            })?;
            p
        }
        Stands::Argument => {
            let a: S32 = k.argument("some");
            Some(a.gt(&mut k, 0))
        }
        Stands::AfterExit => {
            let some = k.size("some", 1000);
            let p = k.compare(Cmp::Ge, thread, some);
            k.exit(p, false);
            None
        }
        Stands::AfterLoop => {
            let some = k.size("some", 1000);
            let turn = k.open_loop("round", 0, 1, 1000);
            k.close_loop(&turn, some);
            None
        }
    };
    if let Some(p) = guard {
        k.begin_if(p, false);
    }
    if product {
        let mut words =
            |k: &mut Kernel, n| -> Vec<Reg> { (0..n).map(|_| U32::from(0).register(k)).collect() };
        let (a, b) = (words(&mut k, 4), words(&mut k, 2));
        let sums: Vec<Reg> = (0..4).map(|_| F32::from(0.0).register(&mut k)).collect();
        k.multiply_accumulate(&atom, &sums, &a, &b);
    } else {
        let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(1,1,1):(0,0,0)"))?;
        let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, tilewright::Operand::A)?;
        let from = a.partition_s(&mut k, &copy, lane)?;
        k.load_fragment(&from)?;
    }
    if guard.is_some() {
        k.end_if();
    }
    k.store_fragment(&y, &value)?;
    Ok(k)
}

#[test]
fn instructions_of_whole_warps_take_whole_warps() -> Result {
    use Stands::{AfterExit, AfterLoop, Argument, Data, Free, Lanes, Warps};
    for product in [true, false] {
        for (threads, stands, right) in [
            (32, Free, true),
            (64, Free, true),
            (64, Warps, true),
            (64, AfterLoop, true),
            (64, Argument, true),
            (64, Lanes, false),
            (64, Data, false),
            (64, AfterExit, false),
            (32, Lanes, false),
            (48, Free, false),
            (48, Warps, true),
            (96, Free, true),
        ] {
            let what = format!("{threads} threads, {stands:?}, a product: {product}");
            match matrix_product(threads, stands, product)?.build(ARCH) {
                Ok(_) => assert!(right, "{what}"),
                Err(e) => assert!(
                    !right && matches!(e.code(), "partial_warp" | "coverage"),
                    "{what}: {e}"
                ),
            }
        }
    }
    let error = refusal(matrix_product(16, Free, true)?);
    assert_eq!(error.code(), "partial_warp");
    assert!(
        error
            .to_string()
            .contains("mma.sync is an instruction of whole warps"),
        "{error}"
    );
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
            let some = k.size("some", 10);
            let five = k.pool.constant(5);
            let p = k.compare(Cmp::Lt, some, five);
            k.begin_if(p, true);
            k.copy(&x, &first)?;
            k.otherwise();
            k.copy(&x, &first)?;
            k.end_if();
        } else {
            k.copy(&x, &first)?;
        }
        let p = only.map(|only| {
            let only = k.pool.constant(only);
            k.compare(Cmp::Eq, thread, only)
        });
        if let Some(p) = p {
            k.begin_if(p, false);
        }
        k.copy(&x, &again)?;
        if p.is_some() {
            k.end_if();
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
    let (block, thread, zero) = (k.tiles(Axis::X, n, 128)?, k.thread(), k.pool.constant(0));
    let [pairs, apart] = [layout("(64,2):(2,1)"), layout("(64,2):(1,64)")];
    let tile = |k: &mut Kernel, v: &View, by: &Layout| {
        v.tile(k, &[128], &[block])?.partition(k, by, thread)
    };
    let (from, to) = (tile(&mut k, &x, &pairs)?, tile(&mut k, &y, &pairs)?);
    let (from, to) = (from.vectors(&k, 2)?, to.vectors(&k, 2)?);
    k.copy(&from, &to)?;
    let first = k.compare(Cmp::Eq, thread, zero);
    k.begin_if(first, false);
    let (from, to) = (tile(&mut k, &x, &apart)?, tile(&mut k, &y, &apart)?);
    k.copy(&from, &to)?;
    k.end_if();
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
        if inside {
            let (some, five) = (k.size("some", 10), k.pool.constant(5));
            let p = k.compare(Cmp::Lt, some, five);
            k.begin_if(p, true);
        }
        let value = k.load_fragment(&x)?;
        k.store_fragment(&x, &value)?;
        if inside {
            k.end_if();
        }
        let error = refusal(k);
        assert_eq!(error.code(), "input", "{error}");
        assert_eq!(
            error.to_string(),
            "write x: `x` is an input, which is read by a cache that sees no stores: declare it an output"
        );
    }
    Ok(())
}

#[test]
fn loops_end() -> Result {
    let counted = |start: i64, step: i64, limit_hi: i64, size: i64| -> Result<Kernel> {
        let (mut k, [x, y, ..]) = shares()?;
        let n = k.size("rounds", size);
        let turn = k.open_loop("round", start, step, limit_hi);
        k.close_loop(&turn, n);
        k.copy(&x, &y)?;
        Ok(k)
    };
    for (start, step, limit_hi, size, right) in [
        (0, 1, 1000, 1000, true),
        (0, 32, 1 << 30, 1 << 30, true),
        (5, 3, 1000, 1000, true),
        (0, 1, (1 << 32) - 1, (1 << 32) - 1, true),
        (1, 0, 1000, 1000, false),
        (0, -1, 1000, 1000, false),
        (0, 32, (1 << 32) - 1, (1 << 32) - 1, false),
        (0, 1 << 31, (1 << 32) - 1, (1 << 32) - 1, false),
        (1, 1 << 32, 1000, 1000, false),
        (1, i64::MAX, 1000, 1000, false),
        (0, 1, 100, 1000, false),
    ] {
        let what = format!("from {start} by {step} to {size}");
        match counted(start, step, limit_hi, size)?.build(ARCH) {
            Ok(_) => assert!(right, "{what}"),
            Err(e) => assert!(!right && e.code() == "loop", "{what}: {e}"),
        }
    }
    // As long as an argument says so, which does not change.
    let (mut k, [x, y, ..]) = shares()?;
    let turn = k.open_loop("round", 0, 1, 1000);
    let a: S32 = k.argument("a");
    let a = a.register(&mut k);
    let again = k.compare_value(Cmp::Gt, Type::S32, a, 0, None);
    k.close_loop_while(&turn, again);
    k.copy(&x, &y)?;
    assert_eq!(refusal(k).code(), "loop");
    // A loop that goes on where another one may have ended beyond its bound.
    let (mut k, [x, y, ..]) = shares()?;
    let n = k.size("rounds", 1000);
    let first = k.open_loop("first", 0, 1, 1000);
    k.close_loop(&first, n);
    let second = k.resume_loop("second", &first, 1, 10);
    let zero = k.pool.constant(0);
    k.close_loop(&second, zero);
    k.copy(&x, &y)?;
    let kernel = k.build(ARCH);
    assert!(kernel.is_ok(), "{:?}", kernel.err());
    Ok(())
}

#[test]
fn counters_and_indices_are_not_written() -> Result {
    let written = |which: usize| -> Result<Kernel> {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let (thread, one, zero) = (k.thread(), layout("(128,1):(1,0)"), k.pool.constant(0));
        let block = k.block_index(Axis::X, 1 << 20);
        let rounds = k.size("rounds", 1000);
        let [x, y] = [x, y].map(|v| v.partition(&mut k, &one, thread));
        let (x, y) = (x?, y?);
        let outer = k.open_loop("outer", 0, 1, 1000);
        let inner = k.open_loop("inner", 0, 1, 1000);
        let register = match which {
            0 => Some(inner.counter),
            1 => Some(outer.counter),
            2 => Some(block),
            3 => Some(thread),
            4 => Some(rounds),
            _ => None,
        };
        let register = register.map(|e| k.value(e));
        if let Some(register) = register {
            k.set(Type::U32, register, 0);
        }
        k.close_loop(&inner, rounds);
        k.close_loop(&outer, rounds);
        k.copy(&x, &y)?;
        let _ = zero;
        Ok(k)
    };
    for which in 0..5 {
        let error = refusal(written(which)?);
        assert!(
            matches!(error, ProofError::Reassigned { .. }),
            "{which}: {error}"
        );
    }
    assert!(written(5)?.build(ARCH).is_ok());
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
        let (rows, cols) = (k.size("rows", 1 << 20), k.pool.constant(32));
        let y = k.output("y", Element::F32, &[rows, cols]);
        let (i, zero, thread) = (k.tiles(Axis::X, rows, 16)?, k.pool.constant(0), k.thread());
        let (some, five) = (k.size("some", 10), k.pool.constant(5));
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
        let sometimes = k.compare(Cmp::Lt, some, five);
        match waits {
            Waits::Before => k.wait_group(0),
            Waits::ForAll => k.wait_all(),
            Waits::ForOlder => k.wait_group(1),
            Waits::ForOlderOnSomePath => {
                k.begin_if(sometimes, true);
                k.commit_group();
                k.end_if();
                k.wait_group(1);
            }
            Waits::OnSomePath => {
                k.begin_if(sometimes, true);
                k.wait_group(0);
                k.end_if();
            }
            Waits::InLoop => {
                let turn = k.open_loop("round", 0, 1, 10);
                k.wait_group(0);
                k.close_loop(&turn, some);
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
