//! Values that all threads, or whole warps, have alike: loops that end by them, barriers under them, and barriers of warps in branches of whole warps.

#![expect(
    clippy::float_cmp,
    reason = "sums of small integers, and copies, are exact"
)]

use super::natural::{numbers, ran};
use super::{ARCH, Done, Result, add, layout, refusal, swizzled, vectors};
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::value::{F32, Predicate, S32};
use tilewright::codegen::view::{Combine, ViewError};
use tilewright::host::{Arg, On, run};

/// How the errors of threads become one.
type Error = fn(&mut Kernel, F32) -> std::result::Result<F32, ViewError>;

fn of_block(k: &mut Kernel, x: F32) -> std::result::Result<F32, ViewError> {
    k.reduce(x, &layout("128:0"), Combine::Max)
}

/// y = (b + the neighbours of y)/2.5 in each block of 128, until no element changes by eps or more, `most` times at most.
fn jacobi(barriers: [usize; 2], of_all: Error) -> Result<Kernel> {
    let (mut k, b, y) = vectors(Element::F32, Element::F32)?;
    let (eps, most): (F32, _) = (k.argument("eps"), k.size("most", 1000));
    let s = k.shared("s", Element::F32, &swizzled("130:1"))?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let at = [0, 1, 2].map(|by| k.constant(by));
    let s = s.tile(&mut k, &[128], &at[..1])?;
    let [left, own, right] = at.map(|by| s.at(&mut k, &[by])?.partition(&mut k, &one, thread));
    let (left, own, right) = (left?, own?, right?);
    let [b, y] = [b, y].map(|v| v.partition(&mut k, &one, thread));
    let b = k.load_fragment(&b?)?;
    let zeros = k.fragment_of(&own, 0.0)?;
    for part in [&left, &right, &own] {
        k.store_fragment(part, &zeros)?;
        k.barrier();
    }
    k.for_loop("i", 0, 1, most, |k, _| {
        let sum = b.map(k, |_, x| x)?;
        for part in [&left, &right] {
            let next = k.load_fragment(part)?;
            add(k, &sum, &next)?;
        }
        let new = sum.map(k, |k, x| x.mul(k, 0.4))?;
        let old = k.load_fragment(&own)?.thread_values::<f32>(k)?[0];
        let change = new.thread_values::<f32>(k)?[0].sub(k, old).abs(k);
        (0..barriers[0]).for_each(|_| k.barrier());
        k.store_fragment(&own, &new)?;
        (0..barriers[1]).for_each(|_| k.barrier());
        let done = of_all(k, change)?.lt(k, eps);
        k.break_when(done);
        Done::Ok(())
    })?;
    k.copy(&own, &y?)?;
    Ok(k)
}

#[test]
pub(super) fn iterations_until_the_error_is_small() -> Result {
    for barriers in [[1, 1], [1, 0]] {
        let kernel = jacobi(barriers, of_block)?.build(ARCH)?;
        let b = numbers(384);
        let args = vec![
            ("n", Arg::from(384_u32)),
            ("most", Arg::from(200_u32)),
            ("eps", Arg::from(1e-3_f32)),
            ("x", Arg::input(&b)),
            ("y", Arg::output::<f32>(384)),
        ];
        let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
        for (b, y) in b.chunks(128).zip(y.chunks(128)) {
            let mut x = vec![0.0_f32; 128];
            loop {
                let at = |i: usize| x.get(i).copied().unwrap_or(0.0);
                let next = |i: usize| (b[i] + at(i.wrapping_sub(1)) + at(i + 1)) * 0.4;
                let new: Vec<f32> = (0..128).map(next).collect();
                let error = new.iter().zip(&x).map(|(a, b)| (a - b).abs());
                let error = error.fold(0.0, f32::max);
                x = new;
                if error < 1e-3 {
                    break;
                }
            }
            assert_eq!(x, y);
        }
    }
    assert_eq!(refusal(jacobi([0, 1], of_block)?).code(), "race");
    // Each thread stops by its own error, each warp by its own, and by that of a neighbour.
    let errors: [Error; 3] = [
        |_, x| Ok(x),
        |k, x| k.reduce(x, &layout("(32,4):(0,1)"), Combine::Max),
        |k, x| Ok(x.shuffle(k, Shuffle::Down, 1)),
    ];
    for of_all in errors {
        let error = refusal(jacobi([1, 1], of_all)?);
        assert!(matches!(error.code(), "undecided" | "divergent"), "{error}");
    }
    Ok(())
}

/// A barrier under a value that all threads load from one element of shared memory, and a barrier under its opposite.
#[test]
fn what_all_threads_load_is_alike() -> Result {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Load {
        One,
        Each,
        /// By some threads, while the others keep what they had.
        Guarded,
        /// Compared with another number the second time.
        Other,
        /// Half of the threads come to the barrier.
        ByHalf,
    }
    let kernel = |load: Load| -> Result<Kernel> {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let [tile, flag] =
            ["tile", "flag"].map(|name| k.shared(name, Element::F32, &swizzled("128:1")));
        let (tile, flag) = (tile?, flag?);
        let (thread, half, a): (_, _, F32) = (k.thread(), k.constant(64), k.argument("a"));
        let [one, across] = [layout("(128,1):(1,0)"), layout("((64,2),1):((2,1),0)")];
        let zero = k.constant(0);
        let first = if load == Load::Each { thread } else { zero };
        let [x, y, put, flags] = [&x, &y, &tile, &flag].map(|v| v.partition(&mut k, &one, thread));
        let (x, y, put, flags) = (x?, y?, put?, flags?);
        let take = tile.partition(&mut k, &across, thread)?;
        k.copy(&x, &flags)?;
        k.barrier();
        let lower = Predicate::of(&mut k, thread, Cmp::Lt, half);
        let v = if load == Load::Guarded {
            let v = k.variable(a);
            k.when(lower, |k| {
                let value = flag.load::<f32>(k, &[first])?;
                v.set(k, value);
                Done::Ok(())
            })?;
            v.get(&mut k)
        } else {
            flag.load::<f32>(&mut k, &[first])?
        };
        k.copy(&x, &put)?;
        let p = v.mul(&mut k, v).add(&mut k, 1.0).lt(&mut k, 5.0);
        let q = match load {
            Load::Other => v.lt(&mut k, 6.0).not(),
            _ => p.not(),
        };
        for p in [p, q] {
            let p = if load == Load::ByHalf {
                p.and(&mut k, lower)
            } else {
                p
            };
            super::barrier_when(&mut k, p);
        }
        k.copy(&take, &y)?;
        Ok(k)
    };
    kernel(Load::One)?.build(ARCH)?;
    for (load, code) in [
        (Load::Each, "divergent"),
        (Load::Guarded, "divergent"),
        (Load::ByHalf, "divergent"),
        (Load::Other, "race"),
    ] {
        let error = refusal(kernel(load)?);
        assert_eq!(error.code(), code, "{load:?}: {error}");
    }
    Ok(())
}

/// Data that an iteration makes decides in it alone: a branch of the next one may go the other way.
#[test]
fn data_of_an_iteration_is_not_that_of_the_next() -> Result {
    let kernel = |barrier: bool, twice: bool| -> Result<Kernel> {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
        let (thread, one, across) = (
            k.thread(),
            layout("(128,1):(1,0)"),
            layout("((64,2),1):((2,1),0)"),
        );
        let [x, y, put] = [x, y, tile.clone()].map(|v| v.partition(&mut k, &one, thread));
        let (x, y, put, take) = (x?, y?, put?, tile.partition(&mut k, &across, thread)?);
        let sums = k.fragment_of(&x, 0.0)?;
        let rounds = k.size("rounds", 1000);
        k.copy(&x, &put)?;
        k.barrier();
        k.for_loop("round", 0, 1, rounds, |k, round| {
            let v = S32::index(k, round).to_f32(k);
            let p = v.mul(k, v).lt(k, 5.0);
            let read = |k: &mut Kernel| {
                let other = k.load_fragment(&take)?;
                add(k, &sums, &other)
            };
            k.when_else(p, read, |k| k.copy(&x, &put))?;
            if twice {
                // In the same iteration it is the same.
                k.when(p, |k| {
                    let other = k.load_fragment(&take)?;
                    add(k, &sums, &other)
                })?;
            }
            if barrier {
                k.barrier();
            }
            Done::Ok(())
        })?;
        k.store_fragment(&y, &sums)?;
        Ok(k)
    };
    for twice in [false, true] {
        kernel(true, twice)?.build(ARCH)?;
        assert_eq!(refusal(kernel(false, twice)?).code(), "race");
    }
    Ok(())
}

/// Butterflies make lanes alike, all five masks those of a warp; other exchanges, other operations and other operands do not.
#[test]
fn butterflies_make_lanes_alike() -> Result {
    type Made = fn(&mut Kernel, F32) -> F32;
    fn butterflies(
        k: &mut Kernel,
        mut x: F32,
        masks: &[u32],
        f: fn(&mut Kernel, F32, F32) -> F32,
    ) -> F32 {
        for &m in masks {
            let y = x.shuffle(k, Shuffle::Butterfly, m);
            x = f(k, x, y);
        }
        x
    }
    let cases: [(&str, bool, Made); 9] = [
        ("a sum", true, |k, x| {
            butterflies(k, x, &[1, 2, 4, 8, 16], |k, x, y| x.add(k, y))
        }),
        ("a largest", true, |k, x| {
            butterflies(k, x, &[16, 8, 4, 2, 1], |k, x, y| y.max(k, x))
        }),
        ("masks of several bits", true, |k, x| {
            butterflies(k, x, &[31, 3, 5, 9, 17], |k, x, y| x.mul(k, y))
        }),
        ("a mask that is missing", false, |k, x| {
            butterflies(k, x, &[1, 2, 4, 8], |k, x, y| x.add(k, y))
        }),
        ("masks that are no basis", false, |k, x| {
            butterflies(k, x, &[1, 2, 3, 8, 16], |k, x, y| x.add(k, y))
        }),
        ("a difference", false, |k, x| {
            butterflies(k, x, &[1, 2, 4, 8, 16], |k, x, y| x.sub(k, y))
        }),
        ("of another value", false, |k, x| {
            let mut x = x;
            for m in [1, 2, 4, 8, 16] {
                let y = x.shuffle(k, Shuffle::Butterfly, m);
                x = x.mul(k, 2.0).add(k, y);
            }
            x
        }),
        ("one lane's", true, |k, x| x.shuffle(k, Shuffle::Index, 3)),
        ("the next lane's", false, |k, x| {
            x.shuffle(k, Shuffle::Down, 1)
        }),
    ];
    for (name, right, made) in cases {
        let mut k = Kernel::new("alike", 32);
        let n = k.size("n", 1 << 20);
        let (x, y) = (
            k.input("x", Element::F32, &[n]),
            k.output("y", Element::F32, &[n]),
        );
        let (block, thread, one) = (k.tiles(Axis::X, n, 32)?, k.thread(), layout("(32,1):(1,0)"));
        let [x, y] = [x, y].map(|v| {
            v.tile(&mut k, &[32], &[block])?
                .partition(&mut k, &one, thread)
        });
        let x = k.load_fragment(&x?)?;
        let own = x.thread_values::<f32>(&mut k)?[0];
        let p = made(&mut k, own).gt(&mut k, 0.0);
        super::barrier_when(&mut k, p);
        k.store_fragment(&y?, &x)?;
        match k.build(ARCH) {
            Ok(_) => assert!(right, "{name}"),
            Err(e) => assert!(!right && e.code() == "divergent", "{name}: {e}"),
        }
    }
    Ok(())
}

/// y = the element of x that another lane of the warp has stored, where the threads from `from` to `to` do so in a branch.
fn by_some_warps(from: i64, to: i64, share: &str, barrier: bool) -> Result<Kernel> {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let [x, y, put] = [x, y, tile.clone()].map(|v| v.partition(&mut k, &one, thread));
    let (x, y, put, take) = (
        x?,
        y?,
        put?,
        tile.partition(&mut k, &layout(share), thread)?,
    );
    let sums = k.fragment_of(&x, 1.0)?;
    let [from, to] = [from, to].map(|c| k.constant(c));
    let p = Predicate::of(&mut k, thread, Cmp::Ge, from);
    let q = Predicate::of(&mut k, thread, Cmp::Lt, to).and(&mut k, p);
    k.when(q, |k| {
        k.copy(&x, &put)?;
        if barrier {
            k.warp_barrier();
        }
        let other = k.load_fragment(&take)?;
        add(k, &sums, &other)
    })?;
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

#[test]
fn warps_meet_in_branches_of_whole_warps() -> Result {
    // The lanes of a warp reversed by halves, and threads by warps.
    let (within, across) = ("((16,2,4),1):((2,1,32),0)", "((64,2),1):((2,1),0)");
    for (from, to) in [(0, 64), (32, 96), (64, 128), (96, 128)] {
        let kernel = by_some_warps(from, to, within, true)?.build(ARCH)?;
        let x = numbers(300);
        let args = vec![
            ("n", Arg::from(300_u32)),
            ("x", Arg::input(&x)),
            ("y", Arg::output::<f32>(300)),
        ];
        let outcome = run(&kernel, On::Emulator, args)?;
        outcome.assert_clean();
        let y: Vec<f32> = outcome.get("y")?;
        for (i, y) in y.iter().enumerate() {
            let (t, lane) = ((i % 128) as i64, i % 32);
            let other = i / 32 * 32 + 2 * (lane % 16) + lane / 16;
            let other = x.get(other).copied().unwrap_or(0.0);
            assert_eq!(
                *y,
                if (from..to).contains(&t) {
                    1.0 + other
                } else {
                    1.0
                }
            );
        }
        assert_eq!(
            refusal(by_some_warps(from, to, within, false)?).code(),
            "race"
        );
        assert!(matches!(
            refusal(by_some_warps(from, to, across, true)?).code(),
            "race" | "undefined"
        ));
    }
    // A part of a warp.
    for (from, to) in [(0, 48), (16, 64), (1, 128)] {
        assert_eq!(
            refusal(by_some_warps(from, to, within, true)?).code(),
            "divergent"
        );
    }
    Ok(())
}

/// A warp's barrier orders nothing of the warps that do not come to it.
#[test]
fn other_warps_do_not_meet() -> Result {
    for (warps, right) in [([0, 128], true), ([0, 32], false), ([32, 128], false)] {
        let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
        let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
        let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
        let [x, y, put] = [x, y, tile.clone()].map(|v| v.partition(&mut k, &one, thread));
        let (x, y, put) = (x?, y?, put?);
        let take = tile.partition(&mut k, &layout("((16,2,4),1):((2,1,32),0)"), thread)?;
        k.copy(&x, &put)?;
        let [from, to] = warps.map(|c| k.constant(c));
        let p = Predicate::of(&mut k, thread, Cmp::Ge, from);
        let p = Predicate::of(&mut k, thread, Cmp::Lt, to).and(&mut k, p);
        k.when(p, |k| {
            k.warp_barrier();
            Done::Ok(())
        })?;
        k.copy(&take, &y)?;
        match k.build(ARCH) {
            Ok(_) => assert!(right, "{warps:?}"),
            Err(e) => assert!(!right && e.code() == "race", "{warps:?}: {e}"),
        }
    }
    Ok(())
}

/// y[i] = x[i − 1] + x[i + 1] where those are, by views that begin before x and end behind it.
#[test]
fn views_may_begin_before_their_buffers() -> Result {
    for vector in [1, 4] {
        let mut k = Kernel::new("around", 128);
        let n = k.size("n", 1 << 20);
        let (x, y) = (
            k.input("x", Element::F32, &[n]),
            k.output("y", Element::F32, &[n]),
        );
        let (block, thread, one) = (
            k.tiles(Axis::X, n, 512)?,
            k.thread(),
            layout("(128,4):(4,1)"),
        );
        let [x, y] = [x, y].map(|v| v.tile(&mut k, &[512], &[block]));
        let (x, y) = (x?, y?);
        let y = y.partition(&mut k, &one, thread)?.vectors(&k, 4)?;
        let sums = k.fragment_of(&y, 0.0)?;
        for by in [-1, 1] {
            let by = k.constant(by * vector);
            let x = x.at(&mut k, &[by])?.partition(&mut k, &one, thread)?;
            let x = k.load_fragment(&x.vectors(&k, vector)?)?;
            add(&mut k, &sums, &x)?;
        }
        k.store_fragment(&y, &sums)?;
        let kernel = k.build(ARCH)?;
        for n in [0, 1, 5, 300, 1024] {
            let x = numbers(n);
            let args = vec![
                ("n", Arg::from(n as u32)),
                ("x", Arg::input(&x)),
                ("y", Arg::output::<f32>(n)),
            ];
            let outcome = run(&kernel, On::Emulator, args)?;
            outcome.assert_clean();
            let y: Vec<f32> = outcome.get("y")?;
            let at = |i: Option<usize>| i.and_then(|i| x.get(i)).copied().unwrap_or(0.0);
            let by = vector as usize;
            let right = |i: usize| at(i.checked_sub(by)) + at(Some(i + by));
            assert!((0..n).all(|i| y[i] == right(i)), "{n} {vector}");
        }
    }
    Ok(())
}
