//! Plans as OpenCL C: the text is the same every time, what accesses cost on AMD's memories, and that each plan has a form or one error.

use layout_core::banks::{AMD_GCN, AMD_R700};
use tilewright_kernels::gemm::{Config, Operands, PlanError, opencl as plans};

type Tested = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_text_is_the_same_every_time() -> Tested {
    let nt: Operands = "nt".parse()?;
    let plan = "sgemm-maxas-128".parse::<Config>().map(Config::kernel)?;
    let first = plans::emit(&plan, nt, &AMD_GCN)?;
    let second = plans::emit(&plan, nt, &AMD_GCN)?;
    assert_eq!(first, second);
    // No register is used before a line that declares it, and none is declared twice: compilers check the rest.
    assert!(first.source.contains("barrier(CLK_LOCAL_MEM_FENCE);"));
    Ok(())
}

#[test]
fn costs_are_those_of_the_memory_that_is_asked_for() -> Tested {
    let nn: Operands = "nn".parse()?;
    let plan = "sgemm-maxas-64".parse::<Config>().map(Config::kernel)?;
    let cost = |model, access: &str| -> Result<_, PlanError> {
        let emitted = plans::emit(&plan, nn, model)?;
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
        let plan = name.parse::<Config>().map(Config::kernel)?;
        for (operands, model) in Operands::ALL
            .into_iter()
            .flat_map(|o| [(o, &AMD_GCN), (o, &AMD_R700)])
        {
            let emitted = plans::emit(&plan, operands, model)?;
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

#[test]
fn every_plan_has_a_form_or_one_error() -> Tested {
    let mut forms = Vec::new();
    for plan in Config::table().map(Config::kernel) {
        for operands in Operands::ALL {
            match plans::emit(&plan, operands, &AMD_GCN) {
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
