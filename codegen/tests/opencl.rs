//! OpenCL C text: what a kernel looks like, that each instruction without a form is one error, and that the text is the same every time.

use layout_codegen::Arch;
use layout_codegen::gemm::{Operands, PlanError, opencl as plans};
use layout_codegen::ir::{Axis, Element, Kernel, Shuffle};
use layout_codegen::print::opencl::{LOCAL_LIMIT, OpenClError, program};
use layout_codegen::registry::{plan_named, plans as all_plans};
use layout_codegen::value::F32;
use layout_core::banks::{AMD_GCN, AMD_R700};
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

#[test]
fn the_text_is_the_same_every_time() -> Tested {
    let nt: Operands = "nt".parse()?;
    let plan = plan_named("sgemm-maxas-128")?;
    let first = plans::emit(plan.as_ref(), nt, &AMD_GCN)?;
    let second = plans::emit(plan.as_ref(), nt, &AMD_GCN)?;
    assert_eq!(first, second);
    // No register is used before a line that declares it, and none is declared twice: compilers check the rest.
    assert!(first.source.contains("barrier(CLK_LOCAL_MEM_FENCE);"));
    Ok(())
}

#[test]
fn costs_are_those_of_the_memory_that_is_asked_for() -> Tested {
    let nn: Operands = "nn".parse()?;
    let plan = plan_named("sgemm-maxas-64")?;
    let cost = |model, access: &str| -> Result<_, PlanError> {
        let emitted = plans::emit(plan.as_ref(), nn, model)?;
        let mut of = emitted.proof.accesses.iter();
        Ok(of
            .find(|a| a.access == access)
            .map(|a| (a.wavefronts, a.ideal)))
    };
    // On NVIDIA's memory the first is 2 and 2, and the second 8 and 4.
    assert_eq!(cost(&AMD_GCN, "readAs")?, Some((1, 1)));
    assert_eq!(cost(&AMD_GCN, "writeCs")?, Some((4, 4)));
    assert_eq!(cost(&AMD_R700, "writeCs")?, Some((16, 8)));
    Ok(())
}

/// Local memory by the R700's write map, and that of the DGEMM: no bank conflict on either of AMD's memories.
#[test]
fn local_memory_has_no_conflicts() -> Tested {
    for name in ["sgemm-r700-64", "dgemm-4x4"] {
        let plan = plan_named(name)?;
        for (operands, model) in Operands::ALL
            .into_iter()
            .flat_map(|o| [(o, &AMD_GCN), (o, &AMD_R700)])
        {
            let emitted = plans::emit(plan.as_ref(), operands, model)?;
            assert!(emitted.proof.accesses.len() >= 4);
            for a in &emitted.proof.accesses {
                let what = format!("{name}, {operands}, {}, {}", model.name, a.access);
                // Reads of vectors by many threads cost what their words cost, on R700 no less than a wavefront for each four lanes.
                assert_eq!(a.wavefronts, a.ideal, "{what}");
            }
        }
    }
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

#[test]
fn every_plan_has_a_form_or_one_error() -> Tested {
    let mut forms = Vec::new();
    for plan in all_plans() {
        for operands in Operands::ALL {
            match plans::emit(plan.as_ref(), operands, &AMD_GCN) {
                Ok(_) => forms.push(plan.name()),
                Err(PlanError::OpenCl(error)) => {
                    assert!(!error.what.is_empty() && !error.kernel.is_empty());
                }
                Err(PlanError::Unsupported { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    forms.dedup();
    assert!(forms.contains(&"sgemm-maxas-64".to_owned()), "{forms:?}");
    assert!(forms.contains(&"sgemm-maxas-128".to_owned()), "{forms:?}");
    Ok(())
}
