//! OpenCL C text: what a kernel looks like, that each instruction without a form is one error.

use layout_codegen::Arch;
use layout_codegen::ir::{Axis, Element, Kernel, Shuffle};
use layout_codegen::print::opencl::{LOCAL_LIMIT, OpenClError, program};
use layout_codegen::value::F32;
use layout_core::{Layout, Swizzled};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// y = x through local memory, an element a thread.
fn copy() -> Result<Kernel, Box<dyn std::error::Error>> {
    let mut k = Kernel::new("copy", 128);
    let n = k.size("n", 1000);
    let (x, y) = (
        k.input("x", Element::F64, &[n]),
        k.output("y", Element::F64, &[n]),
    );
    let tile = k.shared("tile", Element::F64, &Swizzled::parse("128:1")?)?;
    let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    let one = Layout::parse("(128,1):(1,0)")?;
    let x = x.tile(&mut k, &[128], &[block])?;
    let x = x.partition(&mut k, &one, thread)?;
    let y = y.tile(&mut k, &[128], &[block])?;
    let y = y.partition(&mut k, &one, thread)?;
    let tile = tile.partition(&mut k, &one, thread)?;
    k.copy(&x, &tile)?;
    k.barrier();
    k.copy(&tile, &y)?;
    Ok(k)
}

#[test]
fn a_kernel_is_readable() -> Tested {
    let copy = copy()?.build(Arch(80))?;
    let text = program(&[copy.entry().clone()], &["y = x".to_owned()])?;
    let expected = include_str!("opencl_copy.cl");
    assert_eq!(text, expected, "{text}");
    Ok(())
}

/// The error of a kernel with one more instruction.
fn refused(add: impl FnOnce(&mut Kernel)) -> OpenClError {
    let mut k = Kernel::new("own", 64);
    add(&mut k);
    let own = k.build(Arch(80)).expect("it is proven");
    program(&[own.entry().clone()], &[]).expect_err("it has no form")
}

#[test]
fn what_has_no_form_is_one_error() {
    let shuffle = refused(|k| {
        let _ = F32::from(1.0).shuffle(k, Shuffle::Down, 1);
    });
    assert_eq!(shuffle.code(), "no_opencl_form");
    let text = shuffle.to_string();
    assert!(
        text.starts_with(
            "kernel own has no OpenCL C form, because it has a warp shuffle, which needs warps of 32 threads: kernels of f32"
        ),
        "{text}"
    );
}

#[test]
fn a_kernel_named_like_a_word_of_opencl_is_refused() -> Tested {
    for name in ["float", "barrier", "kernel"] {
        let own = Kernel::new(name, 64).build(Arch(80))?;
        let error = program(&[own.entry().clone()], &[]).expect_err(name);
        assert!(error.to_string().contains("take another name"), "{error}");
    }
    Ok(())
}

#[test]
fn more_local_memory_than_a_group_has_is_refused() -> Tested {
    let mut k = Kernel::new("own", 64);
    let elements = LOCAL_LIMIT / 8 + 1;
    k.shared(
        "big",
        Element::F64,
        &Swizzled::parse(&format!("{elements}:1"))?,
    )?;
    let own = k.build(Arch(90))?;
    let error = program(&[own.entry().clone()], &[]).expect_err("too much");
    assert!(error.what.contains("bytes of local memory"), "{error}");
    Ok(())
}
