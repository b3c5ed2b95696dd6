//! Findings that come with Tilewright: the fastest plans for products of language models, of a device that was measured.
//!
//! A line of `measured/h200.csv` is a product, its fastest plan, and the times of the plan and of the library. It holds for every Hopper GPU with as many multiprocessors, because their
//! number decides first which tile fits a product. A user's findings of `tilewright tune` take precedence, and the model serves what was not measured.

use std::sync::OnceLock;

use layout_codegen::Arch;

use super::{Finding, Findings, Machine, ProblemClass, Timed};
use crate::gemm::{DataType, Gemm, Schedule};

/// What was measured on an H200.
const H200: &str = include_str!("measured/h200.csv");

/// The device of these measurements, as the driver names it.
const DEVICE: &str = "NVIDIA H200";

/// Multiprocessors of an H200 and of an H100 SXM.
const MULTIPROCESSORS: u32 = 132;

/// The finding that speaks for a product on a machine: what was measured on an H200, for a GPU of Hopper with 132 multiprocessors.
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::gemm::{DataType, Gemm, Operands};
/// use tilewright_kernels::select::{Machine, ProblemClass, choose, shipped};
///
/// let (nt, machine): (Operands, _) = ("nt".parse()?, Machine::for_arch(Arch(90)));
/// let layer = Gemm::packed(300, 28672, 4096, nt);
/// let finding = shipped(&machine, &ProblemClass::of(DataType::Bf16, &layer)).ok_or("measured")?;
/// // Two tiles of 152 rows.
/// let plan = &finding.candidates[0].plan;
/// assert!(plan.starts_with("wgmma-bf16-152x128x64+swapab+persistent"));
/// assert_eq!(choose(DataType::Bf16, &layer, Arch(90), &machine, None)?.config.to_string(), *plan);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shipped(machine: &Machine, class: &ProblemClass) -> Option<&'static Finding> {
    let alike = machine.arch == Arch(90) && machine.multiprocessors == MULTIPROCESSORS;
    alike.then(|| all().lookup(DEVICE, class)).flatten()
}

/// All of them, read once.
fn all() -> &'static Findings {
    static ALL: OnceLock<Findings> = OnceLock::new();
    ALL.get_or_init(|| H200.lines().filter_map(finding).collect())
}

/// The finding of a line; none of comments and the header.
fn finding(line: &str) -> Option<Finding> {
    let words: Vec<&str> = line.split(',').collect();
    let &[of_type, trans, m, n, k, plan, split, us, _] = &words[..] else {
        return None;
    };
    let data_type = DataType::ALL
        .into_iter()
        .find(|t| t.to_string() == of_type)?;
    let [m, n, k] = [m, n, k].map(|size| size.parse().ok());
    let problem = Gemm::packed(m?, n?, k?, trans.parse().ok()?);
    Some(Finding {
        device: DEVICE.to_owned(),
        driver: "13.0".to_owned(),
        date: "2026-11-28".to_owned(),
        class: ProblemClass::of(data_type, &problem),
        candidates: vec![Timed {
            plan: plan.to_owned(),
            schedule: Schedule {
                split: split.parse().ok()?,
                pack: false,
            },
            milliseconds: us.parse::<f64>().ok()? / 1e3,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Config;

    /// Every line is a product of its own, and its plan is one that serves it.
    #[test]
    fn every_line_is_a_plan() {
        let all = all().all();
        let lines = H200.lines().filter(|l| !l.starts_with(['#', 't']));
        assert_eq!(all.len(), lines.count());
        assert!(all.len() > 600, "{}", all.len());
        for finding in all {
            let (class, timed) = (&finding.class, &finding.candidates[0]);
            let config: Config = timed.plan.parse().expect("a configuration");
            assert_eq!(config.to_string(), timed.plan);
            let problem = Gemm::packed(class.m, class.n, class.k, class.operands);
            let adapted = config
                .specialize(&problem, timed.schedule)
                .expect("its kernel");
            assert!(adapted.launch(&problem).expect("a launch").is_some());
        }
        let [own, other] = [90, 80].map(|arch| Machine::for_arch(Arch(arch)));
        assert!(shipped(&own, &all[0].class).is_some());
        assert!(shipped(&other, &all[0].class).is_none());
    }
}
