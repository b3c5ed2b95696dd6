//! What an author states of the elements of an input: a range bounds indices and numbers of iterations, and launches check it.

use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::value::{Predicate, S32};
use tilewright::codegen::view::Combine;
use tilewright::host::{Arg, On, run};

use super::natural::ran;
use super::{ARCH, Result, swizzled};

/// What elements of x are stated to be, as a range of numbers or of sizes.
#[derive(Clone, Copy)]
enum Range {
    Unstated,
    Numbers(i64, i64),
    /// `0..bins + more`
    Sizes(i64),
}

/// counts[b] = how many x are b, in shared memory of 256 counts and in `bins` of them, without a clamp and without a comparison.
fn counted(range: Range, shared: bool) -> Result<Kernel> {
    let mut k = Kernel::new("counted", 128);
    let (n, bins) = (k.size("n", 1 << 30), k.size("bins", 256));
    let x = k.input("x", Element::S32, &[n]);
    let counts = k.partial_output("counts", Element::S32, &[bins]);
    let own = k.shared("own", Element::S32, &swizzled("256:1"))?;
    let bounds = match range {
        Range::Unstated => None,
        Range::Numbers(low, high) => Some((k.constant(low), k.constant(high))),
        Range::Sizes(more) => Some((k.constant(0), k.linear(&[(1, bins)], more))),
    };
    if let Some((low, high)) = bounds {
        k.assume_range(&x, low, high, "numbers of bins");
    }
    let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    for half in [0, 128] {
        let at = k.linear(&[(1, thread)], half);
        own.store(&mut k, &[at], S32::from(0))?;
    }
    k.barrier();
    let i = k.linear(&[(128, block), (1, thread)], 0);
    let p = Predicate::of(&mut k, i, Cmp::Lt, n);
    k.when(p, |k| {
        let bin = x.load::<i32>(k, &[i])?.to_index(k);
        if shared {
            own.atomic(k, &[bin], Combine::Add, S32::from(1))
        } else {
            // The number of iterations is what x says.
            let one = k.constant(1);
            let all = k.add(bin, one);
            k.for_loop("bin", 0, 1, all, |k, b| {
                counts.atomic(k, &[b], Combine::Add, S32::from(1))
            })
        }
    })?;
    k.barrier();
    let p = Predicate::of(&mut k, thread, Cmp::Lt, bins);
    k.when(p, |k| {
        let count = own.load::<i32>(k, &[thread])?;
        counts.atomic(k, &[thread], Combine::Add, count)
    })?;
    Ok(k)
}

#[test]
fn a_stated_range_bounds_indices_and_iterations() -> Result {
    let code = |range, shared| -> Result<&'static str> {
        Ok(counted(range, shared)?
            .build(ARCH)
            .map_or_else(|e| e.code(), |_| "proven"))
    };
    for shared in [true, false] {
        assert_eq!(code(Range::Numbers(0, 256), shared)?, "proven");
        assert_eq!(code(Range::Sizes(0), shared)?, "proven");
    }
    for range in [
        Range::Unstated,
        Range::Numbers(0, 257),
        Range::Numbers(-1, 256),
        Range::Sizes(1),
    ] {
        assert_eq!(code(range, true)?, "bounds");
    }
    // Ranges that no 32-bit integer is in.
    for range in [Range::Numbers(3, 3), Range::Numbers(0, (1 << 31) + 1)] {
        let error = counted(range, true)?.build(ARCH).unwrap_err().to_string();
        assert!(error.contains("`assume_range`"), "{error}");
    }
    let kernel = counted(Range::Sizes(0), false)?.build(ARCH)?;
    assert!(
        kernel
            .ptx
            .contains("// assumed: the elements of `x` are in 0..bins (numbers of bins)")
    );
    let args = |x: &[i32]| {
        vec![
            ("n", Arg::from(3_u32)),
            ("bins", Arg::from(5_u32)),
            // Elements beyond n are not read.
            ("x", Arg::input(x)),
            ("counts", Arg::in_out(&[0_i32; 5])),
        ]
    };
    let counts: Vec<i32> = ran(&kernel, args(&[2, 0, 3, 99]))?.get("counts")?;
    assert_eq!(counts, [3, 2, 2, 1, 0]);
    for (x, said) in [
        ([2, 5, 1], "element 1 of `x` is 5"),
        ([2, 4, -1], "element 2 of `x` is -1"),
    ] {
        let error = run(&kernel, On::Emulator, args(&x)).unwrap_err();
        assert_eq!(error.code(), "not_as_stated");
        assert!(error.to_string().contains(said), "{error}");
    }
    Ok(())
}

/// What is stated of an input says nothing where no element of it is loaded: then the range may be empty.
#[test]
fn a_range_of_no_elements_is_no_fact() -> Result {
    let code = |loaded: bool| -> Result<&'static str> {
        let mut k = Kernel::new("empty", 128);
        let (n, rows) = (k.size("n", 1 << 20), k.size("rows", 256));
        let (zero, one) = (k.constant(0), k.constant(1));
        let [x, other] = ["x", "other"].map(|name| k.input(name, Element::S32, &[n]));
        let y = k.output("y", Element::S32, &[n]);
        k.assume_range(&x, zero, rows, "rows");
        let s = k.shared("s", Element::S32, &swizzled("128:1"))?;
        let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
        let i = k.linear(&[(128, block), (1, thread)], 0);
        s.store(&mut k, &[thread], S32::from(0))?;
        k.barrier();
        // No element of s, where rows is 0.
        let none = Predicate::of(&mut k, rows, Cmp::Lt, one);
        let wrong = |k: &mut Kernel| {
            let at = other.load::<i32>(k, &[i])?.to_index(k);
            let at = k.linear(&[(1, at)], 200);
            k.when(none, |k| s.atomic(k, &[at], Combine::Add, S32::from(1)))
        };
        let value = x.load::<i32>(&mut k, &[i])?;
        if loaded {
            let inside = Predicate::of(&mut k, i, Cmp::Lt, n);
            k.when(inside, |k| {
                x.load::<i32>(k, &[i])?;
                wrong(k)
            })?;
        } else {
            wrong(&mut k)?;
        }
        y.store(&mut k, &[i], value)?;
        Ok(k.build(ARCH).map_or_else(|e| e.code(), |_| "proven"))
    };
    assert_eq!([code(false)?, code(true)?], ["bounds", "proven"]);
    Ok(())
}
