//! What a run did, and what tests ask of it.

use std::fmt;

use layout_codegen::prove::AccessProof;
#[cfg(feature = "emulator")]
use ptx_emulator::{Finding, Report};

use super::element::{BufferElement, BufferType};
use super::on::Ran;

/// A shared access of the kernel: what was proven of it, and what the emulator counted.
///
/// ```
/// use tilewright::codegen::Arch;
/// use tilewright::kernels::gemm::{DataType, Gemm, Operands, Schedule};
/// use tilewright::kernels::gemm::Config;
/// use tilewright::host::{GemmKernel, Inputs, On, run};
///
/// let plan = "sgemm-maxas-64".parse::<Config>()?;
/// let problem = Gemm::packed(64, 64, 16, Operands::ALL[0]);
/// let kernel = GemmKernel::new(plan, &problem, Schedule::default(), Arch(80))?;
/// let inputs = Inputs::random(&problem, DataType::F32, 1);
/// let outcome = run(&kernel, On::Emulator, kernel.args(&inputs)?)?;
/// for access in &outcome.accesses {
///     let proven = access.proof.wavefronts;
///     assert_eq!(access.wavefronts, Some((proven, proven)), "{}", access.proof.access);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountedAccess {
    /// What was proven.
    pub proof: AccessProof,
    /// The least and the most wavefronts of one execution; none if it was never executed, or not counted.
    pub wavefronts: Option<(u32, u32)>,
    /// Every execution was by all lanes of a warp, as the proof has it.
    pub all_lanes: bool,
}

impl CountedAccess {
    /// How the count refutes the proof: more wavefronts than proven, or fewer although all lanes were active. Inactive lanes may save some.
    fn refutes(&self) -> Option<String> {
        let (name, proven) = (&self.proof.access, self.proof.wavefronts);
        let (least, most) = self.wavefronts?;
        let fewer = self.proof.exact && self.all_lanes && least != proven;
        if most <= proven && !fewer {
            return None;
        }
        let took = if least == most {
            most.to_string()
        } else {
            format!("{least} to {most}")
        };
        Some(format!(
            "the access `{name}` took {took} wavefronts, and {proven} are proven"
        ))
    }
}

/// A buffer after the run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Content {
    pub(crate) name: String,
    pub(crate) element: BufferType,
    pub(crate) bytes: Vec<u8>,
    /// Where it lay on the emulator.
    pub(crate) address: u64,
}

/// What a run did: the buffers, where it ran and why there, and what was seen on the way.
///
/// ```
/// use tilewright::host::{Arg, On, PtxKernel, run};
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
///     .visible .entry seven(.param .u64 out) {\n\
///         .reg .b64 %d<1>; .reg .b32 %r<1>;\n\
///         ld.param.u64 %d0, [out]; mov.u32 %r0, 7; st.global.u32 [%d0], %r0; ret;\n\
///     }\n";
/// let kernel = PtxKernel::new(text, "seven")?.block([1, 1, 1]);
/// let outcome = run(&kernel, On::Emulator, [("out", Arg::output::<i32>(1))])?;
/// assert_eq!((outcome.device.as_str(), outcome.why.as_str()), ("emulator", "as asked"));
/// assert_eq!(outcome.clean(), Ok(()));
/// assert_eq!(outcome.get::<i32>("out")?, [7]);
/// assert_eq!(
///     outcome.get::<f32>("out").unwrap_err().to_string(),
///     "`seven` on the emulator: `out` is a buffer of i32, not of f32",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The main entry.
    pub kernel: String,
    /// Where it ran.
    pub ran: Ran,
    /// The name of the GPU or the OpenCL device, or `emulator`.
    pub device: String,
    /// Why there.
    pub why: String,
    /// Launches that were made; 0 if there was nothing to do.
    pub launches: usize,
    /// Milliseconds on a GPU or an OpenCL device: of the launches together, the median of the repeats if there are any; none on the emulator.
    pub time_ms: Option<f64>,
    /// Registers of a thread of the main entry, on a GPU.
    pub registers: Option<u32>,
    /// Findings and counters of the emulator; none elsewhere, and if nothing was launched.
    #[cfg(feature = "emulator")]
    pub report: Option<Report>,
    /// What the emulator counted for each proven shared access.
    pub accesses: Vec<CountedAccess>,
    /// Proven accesses that the run did not make because it took another way to do the same, of which it made all
    /// ([`Runnable::alternatives`](super::Runnable::alternatives)).
    pub not_taken: Vec<String>,
    /// Instructions that accessed shared memory on the emulator and that no proof covers, with their lines.
    pub unproven: Vec<String>,
    /// Buffers beside which a kernel wrote, on a GPU or an OpenCL device (there only behind them). On the emulator this is a finding.
    pub guards_touched: Vec<String>,
    /// Inputs that a kernel changed.
    pub inputs_changed: Vec<String>,
    /// What the emulator counted of stores that a kernel promises otherwise, a sentence for each buffer: elements of outputs that were stored never or more than
    /// once, stores to inputs ([`Launches::stores`](super::Launches::stores)).
    pub miscounted: Vec<String>,
    pub(crate) buffers: Vec<Content>,
}

/// Something that was asked of an outcome and does not hold.
///
/// ```
/// use tilewright::host::{OutcomeError, Ran};
///
/// let reasons = vec!["changed the input `a`".to_owned(), "changed the input `b`".to_owned()];
/// let error = OutcomeError { kernel: "gemm".to_owned(), ran: Ran::Emulator, reasons };
/// assert_eq!(
///     error.to_string(),
///     "`gemm` on the emulator: 2 problems\n  changed the input `a`\n  changed the input `b`"
/// );
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutcomeError {
    /// The main entry.
    pub kernel: String,
    /// Where it ran.
    pub ran: Ran,
    /// Every reason, one sentence each; at least one.
    pub reasons: Vec<String>,
}

impl fmt::Display for OutcomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` on {}: ", self.kernel, self.ran)?;
        match self.reasons.as_slice() {
            [one] => f.write_str(one),
            many => {
                write!(f, "{} problems", many.len())?;
                many.iter().try_for_each(|reason| write!(f, "\n  {reason}"))
            }
        }
    }
}

impl std::error::Error for OutcomeError {}

/// The accesses of those of `ways` of which none was executed, if all of another way's were.
#[cfg(feature = "emulator")]
pub(crate) fn not_taken(accesses: &[CountedAccess], ways: &[Vec<String>]) -> Vec<String> {
    let of = |way: &[String]| -> Vec<&CountedAccess> {
        let all = accesses.iter();
        all.filter(|a| way.contains(&a.proof.access)).collect()
    };
    let (taken, left): (Vec<_>, Vec<_>) = ways
        .iter()
        .map(|way| of(way))
        .filter(|way| !way.is_empty())
        .partition(|way| way.iter().any(|a| a.wavefronts.is_some()));
    let whole = |way: &Vec<&CountedAccess>| way.iter().all(|a| a.wavefronts.is_some());
    if !taken.iter().any(whole) {
        return Vec::new();
    }
    let names = left.iter().flatten().map(|a| a.proof.access.clone());
    names.collect()
}

impl Outcome {
    /// The elements of a buffer after the run.
    ///
    /// # Errors
    ///
    /// There is no buffer of this name, or its elements are of another type.
    pub fn get<T: BufferElement>(&self, name: &str) -> Result<Vec<T>, OutcomeError> {
        let content = self.content(name)?;
        if content.element != T::TYPE {
            let (is, not) = (content.element, T::TYPE);
            return self
                .holds(vec![format!("`{name}` is a buffer of {is}, not of {not}")])
                .map(|()| Vec::new());
        }
        Ok(T::from_bytes(&content.bytes))
    }

    /// The bytes of a buffer after the run.
    ///
    /// # Errors
    ///
    /// There is no buffer of this name.
    pub fn bytes(&self, name: &str) -> Result<&[u8], OutcomeError> {
        Ok(&self.content(name)?.bytes)
    }

    fn content(&self, name: &str) -> Result<&Content, OutcomeError> {
        let found = self.buffers.iter().find(|content| content.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.buffers.iter().map(|b| b.name.as_str()).collect();
            self.error(vec![format!(
                "there is no buffer `{name}`; the buffers are {}",
                names.join(", ")
            )])
        })
    }

    fn error(&self, reasons: Vec<String>) -> OutcomeError {
        OutcomeError {
            kernel: self.kernel.clone(),
            ran: self.ran,
            reasons,
        }
    }

    fn holds(&self, reasons: Vec<String>) -> Result<(), OutcomeError> {
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(self.error(reasons))
        }
    }

    /// A finding with the buffer that it is about: allocations of the emulator lie 16 MiB apart.
    #[cfg(feature = "emulator")]
    fn named(&self, finding: &Finding) -> String {
        const NEAR: u64 = 1 << 20;
        let near = |buffer: &&Content, address: u64| {
            let end = buffer.address + buffer.bytes.len() as u64;
            (buffer.address.saturating_sub(NEAR)..end + NEAR).contains(&address)
        };
        let buffer = finding
            .address
            .and_then(|address| self.buffers.iter().find(|b| near(b, address)));
        match buffer {
            Some(buffer) => format!("{finding}, buffer `{}`", buffer.name),
            None => finding.to_string(),
        }
    }

    /// Whether the kernel did nothing wrong that was seen: on the emulator no finding (access out of bounds, race, deadlock, …);
    /// elsewhere nothing written beside a buffer; no input changed anywhere. Of a kernel that promises it ([`Launches::stores`](super::Launches::stores)), as
    /// proven kernels do, the emulator has seen each element of the outputs stored once.
    ///
    /// ```
    /// use tilewright::host::{Arg, On, PtxKernel, run};
    ///
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
    ///     .visible .entry block(.param .u64 out) {\n\
    ///         .reg .b64 %d<1>; .reg .b32 %r<1>;\n\
    ///         ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x; st.global.u32 [%d0], %r0; ret;\n\
    ///     }\n";
    /// let block = PtxKernel::new(text, "block")?.block([1, 1, 1]);
    /// // Two blocks store different numbers to the same word.
    /// let twice = block.grid([2, 1, 1]);
    /// let outcome = run(&twice, On::Emulator, [("out", Arg::output::<u32>(1))])?;
    /// let error = outcome.clean().unwrap_err().to_string();
    /// assert!(error.starts_with("`block` on the emulator: global_race: line 6: st.global.u32"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Everything that was seen.
    pub fn clean(&self) -> Result<(), OutcomeError> {
        let mut reasons: Vec<String> = Vec::new();
        #[cfg(feature = "emulator")]
        if let Some(report) = &self.report {
            reasons.extend(report.findings.iter().map(|finding| self.named(finding)));
            let more = report
                .total_findings
                .saturating_sub(report.findings.len() as u64);
            if more > 0 {
                reasons.push(format!("{more} more findings"));
            }
        }
        let beside = |name: &String| format!("wrote beside the buffer `{name}`");
        reasons.extend(self.guards_touched.iter().map(beside));
        let changed = |name: &String| format!("changed the input `{name}`");
        reasons.extend(self.inputs_changed.iter().map(changed));
        reasons.extend(self.miscounted.iter().cloned());
        self.holds(reasons)
    }

    /// Whether every shared access took as many wavefronts as are proven for it, and none was made that nothing is proven of. An access
    /// that was never executed, or only with some lanes inactive, is not counted as proven; nor is any on a GPU, which counts none.
    /// Those of ways that the run did not take ([`Outcome::not_taken`]) are left out: another run must take them.
    ///
    /// ```
    /// use tilewright::codegen::Arch;
    /// use tilewright::kernels::gemm::{DataType, Gemm, Operands, Schedule};
    /// use tilewright::kernels::gemm::Config;
    /// use tilewright::host::{GemmKernel, Inputs, On, run};
    ///
    /// let plan = "wgmma-f16-128x128x64".parse::<Config>()?;
    /// // C is rounded before it goes through shared memory, unless it is read.
    /// for (beta, not_taken) in [(0.0, ["stageC", "fetchC"]), (1.0, ["stageRounded", "fetchRounded"])] {
    ///     let problem = Gemm { beta, ..Gemm::packed(128, 128, 64, Operands::ALL[0]) };
    ///     let kernel = GemmKernel::new(plan, &problem, Schedule::default(), Arch(90))?;
    ///     let inputs = Inputs::random(&problem, DataType::F16, 1);
    ///     let outcome = run(&kernel, On::Emulator, kernel.args(&inputs)?)?;
    ///     outcome.assert_counted_as_proven();
    ///     assert_eq!(outcome.not_taken, not_taken);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Everything that differs.
    pub fn counted_as_proven(&self) -> Result<(), OutcomeError> {
        if self.ran != Ran::Emulator {
            let reason = "a GPU counts no wavefronts: run on the emulator";
            return self.holds(vec![reason.to_owned()]);
        }
        let differs = |access: &CountedAccess| {
            let AccessProof {
                access: name,
                wavefronts: proven,
                exact,
                ..
            } = &access.proof;
            let Some((_, most)) = access.wavefronts else {
                let missing = !self.not_taken.contains(name);
                return missing.then(|| format!("the access `{name}` was never executed"));
            };
            access.refutes().or_else(|| (*exact && most < *proven).then(|| {
                format!("the access `{name}` took at most {most} of {proven} proven wavefronts, with lanes inactive")
            }))
        };
        let unproven = |line: &String| format!("nothing is proven of {line}");
        let differing = self.accesses.iter().filter_map(differs);
        self.holds(
            differing
                .chain(self.unproven.iter().map(unproven))
                .collect(),
        )
    }

    /// Everything that a run of any size shows to be wrong, its numbers apart: what [`Outcome::clean`] says, and accesses that took other wavefronts than
    /// proven ([`Outcome::counted_as_proven`]). Where the size leaves some accesses out, the others may take fewer.
    ///
    /// ```
    /// use tilewright::host::{Arg, On, PtxKernel, run};
    ///
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }";
    /// let nothing = PtxKernel::new(text, "nothing")?;
    /// assert!(run(&nothing, On::Emulator, [])?.findings().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn findings(&self) -> Vec<String> {
        let reasons = |checked: Result<(), OutcomeError>| checked.err().map(|e| e.reasons);
        let mut findings = reasons(self.clean()).unwrap_or_default();
        if self.ran != Ran::Emulator || self.launches == 0 {
            return findings;
        }
        let left_out =
            |a: &CountedAccess| a.wavefronts.is_none() && !self.not_taken.contains(&a.proof.access);
        if self.accesses.iter().any(left_out) {
            findings.extend(self.accesses.iter().filter_map(CountedAccess::refutes));
        } else {
            findings.extend(reasons(self.counted_as_proven()).unwrap_or_default());
        }
        findings
    }

    /// Asserts [`Outcome::clean`].
    ///
    /// ```should_panic
    /// use tilewright::host::{Arg, On, PtxKernel, run};
    ///
    /// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
    ///     .visible .entry seven(.param .u64 out) {\n\
    ///         .reg .b64 %d<1>; .reg .b32 %r<1>;\n\
    ///         ld.param.u64 %d0, [out]; mov.u32 %r0, 7; st.global.u32 [%d0], %r0; ret;\n\
    ///     }\n";
    /// let seven = PtxKernel::new(text, "seven")?.block([1, 1, 1]);
    /// // not clean: `seven` on the emulator: out_of_bounds: line 6: st.global.u32: lane 0 accesses 4 bytes …, buffer `out`
    /// run(&seven, On::Emulator, [("out", Arg::output::<u32>(0))])?.assert_clean();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// With everything that was seen, one line each.
    #[track_caller]
    pub fn assert_clean(&self) {
        if let Err(error) = self.clean() {
            panic!("not clean: {error}");
        }
    }

    /// Asserts [`Outcome::counted_as_proven`]. [`GemmKernel`](super::GemmKernel) and [`PtxKernel::access`](super::PtxKernel::access) show
    /// it.
    ///
    /// # Panics
    ///
    /// With everything that differs, one line each.
    #[track_caller]
    pub fn assert_counted_as_proven(&self) {
        if let Err(error) = self.counted_as_proven() {
            panic!("not counted as proven: {error}");
        }
    }
}
