//! What was measured: times of plans on problems, and which of them speak for a new problem.
//!
//! A time depends on the device, the type, the transposes, the sizes and how wide copies can be, and hardly on anything else: not on α and
//! β, on the values, or on leading dimensions beyond the alignment that they leave. These make a [`ProblemClass`]. [`Findings`] holds for
//! each device and class the times of all plans that were tried, the fastest first.
//!
//! A new problem takes the fastest plan of its own class. If its class was not measured, the nearest one speaks for it: one of the same
//! device, type, transposes and widths whose sizes (m, n, k and batch) are each within a factor of [`NEAR`] of its own, at the least
//! distance, which is the sum of the logarithms of these factors, where fewer than 16 rows count as 16. Beyond that the number of waves can be a quite different one, and the
//! model knows better.
//!
//! For example, with 4096×4096×4096 and 2048×2048×2048 measured, 4000×4096×4096 takes what was found for the first, and 3000×3000×3000 what
//! the model says: 4096 / 3000 = 1.37.

use crate::gemm::{DataType, Gemm, Operands, Schedule};

/// How far, as a factor, each size of a measured problem may be from that of a new one for which it speaks.
pub const NEAR: f64 = 1.25;

/// The fewest rows of a tile: products with fewer take as long, the time of reading B.
const FEW: u64 = 16;

/// What a time depends on, besides the device and the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProblemClass {
    /// The type.
    pub data_type: DataType,
    /// The transposes.
    pub operands: Operands,
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// Length of the sums.
    pub k: u64,
    /// Number of products.
    pub batch: u64,
    /// The widest copy in bytes that serves A, B and C: [`Gemm::widths`].
    pub widths: [u32; 3],
}

impl ProblemClass {
    /// The class of a problem.
    pub fn of(data_type: DataType, problem: &Gemm) -> Self {
        Self {
            data_type,
            operands: problem.operands,
            m: problem.m,
            n: problem.n,
            k: problem.k,
            batch: problem.batch.count,
            widths: problem.widths(data_type),
        }
    }

    /// m, n, k and the batch.
    fn sizes(&self) -> [u64; 4] {
        [self.m, self.n, self.k, self.batch]
    }

    /// The sizes that are compared: fewer than [`FEW`] rows count as so many.
    fn distant(&self) -> [u64; 4] {
        let [m, n, k, batch] = self.sizes();
        [m.max(FEW), n, k, batch]
    }

    /// How far `other` is: the sum of the logarithms of the factors between their sizes; none if it does not speak for this class.
    fn distance(&self, other: &Self) -> Option<f64> {
        let alike = self.data_type == other.data_type
            && self.operands == other.operands
            && self.widths == other.widths;
        if !alike {
            return None;
        }
        let mut sum = 0.0;
        for (a, b) in self.distant().into_iter().zip(other.distant()) {
            if a == b {
                continue;
            }
            let factor = a.max(b) as f64 / a.min(b) as f64;
            if factor > NEAR {
                return None;
            }
            sum += factor.ln();
        }
        Some(sum)
    }

    /// What classes are sorted by.
    fn key(&self) -> (String, String, [u64; 4], [u32; 3]) {
        (
            self.data_type.to_string(),
            self.operands.to_string(),
            self.sizes(),
            self.widths,
        )
    }
}

/// The time of one plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Timed {
    /// The plan's name.
    pub plan: String,
    /// Its schedule.
    pub schedule: Schedule,
    /// Median milliseconds of one product, all its launches included.
    pub milliseconds: f64,
}

/// What was measured of one class on one device.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The device, as the driver names it.
    pub device: String,
    /// The CUDA version of the driver, such as `13.0`.
    pub driver: String,
    /// The day, such as `2026-11-21`.
    pub date: String,
    /// The class.
    pub class: ProblemClass,
    /// All plans that were tried and were right, the fastest first.
    pub candidates: Vec<Timed>,
}

/// Findings, at most one for each device and class, in a fixed order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Findings {
    all: Vec<Finding>,
}

impl Findings {
    /// All findings, by device, type, transposes and sizes.
    pub fn all(&self) -> &[Finding] {
        &self.all
    }

    /// Adds a finding, its candidates put in order of their times, and gives back the one of the same device and class that it replaces.
    pub fn insert(&mut self, mut finding: Finding) -> Option<Finding> {
        finding
            .candidates
            .sort_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds));
        let key = |f: &Finding| (f.device.clone(), f.class.key());
        match self.all.binary_search_by_key(&key(&finding), key) {
            Ok(at) => Some(std::mem::replace(&mut self.all[at], finding)),
            Err(at) => {
                self.all.insert(at, finding);
                None
            }
        }
    }

    /// What speaks for a class on a device: its own finding, or the nearest.
    pub fn lookup(&self, device: &str, class: &ProblemClass) -> Option<&Finding> {
        self.all
            .iter()
            .filter(|f| f.device == device)
            .filter_map(|f| Some((f, class.distance(&f.class)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(finding, _)| finding)
    }
}

impl FromIterator<Finding> for Findings {
    fn from_iter<I: IntoIterator<Item = Finding>>(all: I) -> Self {
        let mut findings = Self::default();
        for finding in all {
            findings.insert(finding);
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::Operands;

    fn class(m: u64, n: u64, k: u64) -> ProblemClass {
        let operands: Operands = "nn".parse().expect("nn");
        ProblemClass::of(DataType::F16, &Gemm::packed(m, n, k, operands))
    }

    fn finding(device: &str, class: ProblemClass, plan: &str) -> Finding {
        let timed = |plan: &str, milliseconds| Timed {
            plan: plan.to_owned(),
            schedule: Schedule::default(),
            milliseconds,
        };
        Finding {
            device: device.to_owned(),
            driver: "13.0".to_owned(),
            date: "2026-11-21".to_owned(),
            class,
            candidates: vec![timed("slow", 2.0), timed(plan, 1.0)],
        }
    }

    fn found<'a>(findings: &'a Findings, device: &str, class: &ProblemClass) -> Option<&'a str> {
        let finding = findings.lookup(device, class)?;
        Some(&finding.candidates[0].plan)
    }

    #[test]
    fn the_nearest_class_within_the_factor_speaks() {
        let mut findings = Findings::default();
        for (size, plan) in [(1024, "a"), (1200, "b"), (4096, "c")] {
            findings.insert(finding("gpu", class(size, size, size), plan));
        }
        findings.insert(finding("gpu", class(1, 8192, 8192), "d"));
        let of = |m, n, k| found(&findings, "gpu", &class(m, n, k));
        assert_eq!(of(1024, 1024, 1024), Some("a"));
        assert_eq!(of(1200, 1200, 1200), Some("b"));
        // Between the two, each side of their geometric mean (1108.5).
        assert_eq!(of(1104, 1104, 1104), Some("a"));
        assert_eq!(of(1112, 1112, 1112), Some("b"));
        // Few rows are alike.
        assert_eq!([1, 7, 16, 20].map(|m| of(m, 8192, 8192)), [Some("d"); 4]);
        assert_eq!(of(21, 8192, 8192), None);
        // The factor holds for each size, both ways, its end included.
        assert_eq!(of(4096, 4096, 5120), Some("c"));
        assert_eq!(of(4096, 4096, 5128), None);
        assert_eq!(of(3280, 4096, 4096), Some("c"));
        assert_eq!(of(3272, 4096, 4096), None);
        assert_eq!(of(4096, 4096, 2048), None);
    }

    #[test]
    fn another_device_type_transpose_or_width_says_nothing() {
        let mut findings = Findings::default();
        let own = class(1024, 1024, 1024);
        findings.insert(finding("gpu", own, "a"));
        assert_eq!(found(&findings, "gpu", &own), Some("a"));
        assert_eq!(found(&findings, "other", &own), None);
        for changed in [
            ProblemClass {
                data_type: DataType::Bf16,
                ..own
            },
            ProblemClass {
                operands: "nt".parse().expect("nt"),
                ..own
            },
            ProblemClass {
                widths: [16, 2, 16],
                ..own
            },
            ProblemClass { batch: 2, ..own },
        ] {
            assert_eq!(found(&findings, "gpu", &changed), None, "{changed:?}");
        }
        // A row of 1023 halves is no multiple of 16 bytes.
        assert_eq!(found(&findings, "gpu", &class(1024, 1024, 1023)), None);
    }

    #[test]
    fn a_class_is_held_once_and_the_order_is_fixed() {
        let (mut one, mut other) = (Findings::default(), Findings::default());
        let all: Vec<_> = [(64, "a"), (128, "b"), (8, "c")]
            .map(|(k, plan)| finding("gpu", class(64, 64, k), plan))
            .into();
        for f in &all {
            assert_eq!(one.insert(f.clone()), None);
        }
        for f in all.iter().rev() {
            other.insert(f.clone());
        }
        assert_eq!(one, other);
        let newer = finding("gpu", class(64, 64, 128), "d");
        let replaced = one.insert(newer.clone()).expect("the same class");
        assert_eq!(replaced.candidates[0].plan, "b");
        assert_eq!(one.all().len(), 3);
        assert_eq!(one.lookup("gpu", &newer.class), Some(&one.all()[2]));
    }
}
