//! What the outcome says of kernels that are wrong, and of claims that are.

use std::panic::{UnwindSafe, catch_unwind};

use tilewright::codegen::prove::AccessProof;
use tilewright::emulator::FindingKind;
use tilewright::host::{
    Arg, BufferType, Launches, On, Param, PtxKernel, Role, RunError, RunOptions, Runnable, Scalars,
    Step, StepArg, Stores, run_with,
};

use super::{on_emulator, one_block, racing};

/// A kernel that promises to store each element of `out` once, and nothing to `in`: of `words` words each.
struct Promising {
    kernel: PtxKernel,
    words: u64,
    blocks: u32,
}

impl Runnable for Promising {
    fn ptx(&self) -> &str {
        self.kernel.ptx()
    }

    fn entry(&self) -> &str {
        self.kernel.entry()
    }

    fn params(&self) -> Vec<Param> {
        let of = |name, role| Param::pointer(name, BufferType::U32).used_as(role);
        vec![of("in", Role::Input), of("out", Role::Output)]
    }

    fn launches(&self, _: &Scalars<'_>) -> Result<Launches, RunError> {
        let bytes = ["in", "out"].map(|name| (name.to_owned(), 4 * self.words));
        let step = Step {
            entry: self.entry().to_owned(),
            grid: [self.blocks, 1, 1],
            block: [32, 1, 1],
            cluster: [1; 3],
            shared_bytes: 0,
            args: ["in", "out"]
                .map(|name| StepArg::Argument(name.to_owned()))
                .into(),
        };
        Ok(Launches {
            steps: (self.blocks > 0).then_some(step).into_iter().collect(),
            least_bytes: bytes.into(),
            stores: vec![
                ("in".to_owned(), Stores::Never),
                ("out".to_owned(), Stores::Once),
            ],
            ..Launches::default()
        })
    }
}

#[test]
fn elements_of_outputs_are_stored_once_and_inputs_never() {
    let said = |body: &str, words: u64, blocks: u32| {
        let head = "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 4;
            add.s64 %d2, %d1, %d3; add.s64 %d3, %d0, %d3; ld.global.u32 %r1, [%d3];";
        let params = ".param .u64 in, .param .u64 out";
        let kernel = one_block("promising", params, &format!("{head}\n{body}"));
        let kernel = Promising {
            kernel,
            words,
            blocks,
        };
        let args = [
            ("in", Arg::input(&[7_u32; 40])),
            ("out", Arg::output::<u32>(40)),
        ];
        on_emulator(&kernel, args).miscounted
    };
    let none: [String; 0] = [];
    let copy = "st.global.u32 [%d2], %r1;";
    assert_eq!(said(copy, 32, 1), none);
    assert_eq!(
        said(copy, 33, 1),
        [
            "element 32 of `out` was not stored, or in part: `out` is an output, of which each element is stored once"
        ]
    );
    assert_eq!(
        said(copy, 30, 1),
        ["element 30 of `out` was stored: `out` ends before it, and 1 more elements are wrong"]
    );
    // Equal values, by one block or two, are stores as well.
    let twice = "element 0 of `out` was stored 2 times: `out` is an output, of which each element is stored once, and 31 more elements are wrong";
    assert_eq!(said(&format!("{copy}\n{copy}"), 32, 1), [twice]);
    assert_eq!(said(copy, 32, 2), [twice]);
    let first = "setp.eq.u32 %p0, %r0, 0; @%p0 st.global.u32 [%d2+4], %r1;";
    assert_eq!(
        said(&format!("{copy}\n{first}"), 32, 1),
        [
            "element 1 of `out` was stored 2 times: `out` is an output, of which each element is stored once"
        ]
    );
    // A half of an element, and all but one.
    assert_eq!(
        said(
            "setp.ne.u32 %p0, %r0, 5; @%p0 st.global.u32 [%d2], %r1; @!%p0 st.global.u16 [%d2], 1;",
            32,
            1
        ),
        [
            "element 5 of `out` was not stored, or in part: `out` is an output, of which each element is stored once"
        ]
    );
    // The input gets what it has.
    assert_eq!(
        said(
            &format!("{copy}\nsetp.eq.u32 %p0, %r0, 3; @%p0 st.global.u32 [%d3], %r1;"),
            32,
            1
        ),
        ["element 3 of `in` was stored: `in` is an input, which is not stored to"]
    );
    // Nothing is launched though there are elements.
    assert_eq!(
        said(copy, 2, 0),
        [
            "element 0 of `out` was not stored, or in part: `out` is an output, of which each element is stored once, and 1 more elements are wrong"
        ]
    );
}

#[test]
fn what_is_stored_otherwise_than_promised_is_not_clean() {
    let kernel = one_block("nothing", ".param .u64 in, .param .u64 out", "");
    let kernel = Promising {
        kernel,
        words: 4,
        blocks: 1,
    };
    let args = [
        ("in", Arg::input(&[0_u32; 4])),
        ("out", Arg::output::<u32>(4)),
    ];
    let outcome = on_emulator(&kernel, args);
    assert_eq!(
        outcome.clean().expect_err("nothing is stored").to_string(),
        "`nothing` on the emulator: element 0 of `out` was not stored, or in part: `out` is an output, of which each element is stored once, and 3 more elements are wrong"
    );
    assert!(failure(move || outcome.assert_clean()).contains("stored once"));
}

/// The message of an assertion that fails.
fn failure(assert: impl FnOnce() + UnwindSafe) -> String {
    let payload = catch_unwind(assert).expect_err("the assertion must fail");
    payload.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn a_race_is_not_clean() {
    let outcome = on_emulator(&racing(), [("out", Arg::output::<u32>(64))]);
    let error = outcome.clean().expect_err("a race").to_string();
    assert!(
        error.contains("shared_race: line 9: ld.shared.u32"),
        "{error}"
    );
    let report = outcome.report.as_ref().expect("it ran");
    assert_eq!(report.findings[0].kind, FindingKind::SharedRace);
    let message = failure(move || outcome.assert_clean());
    assert!(
        message.starts_with("not clean: `racing` on the emulator: "),
        "{message}"
    );
    assert!(message.contains("shared_race"), "{message}");
}

#[test]
fn everything_else_that_is_wrong_is_not_clean() {
    let out = |count| [("out", Arg::output::<u32>(count))];
    let not_clean = |kernel: &PtxKernel, arg| {
        let outcome = on_emulator(kernel, arg);
        outcome.clean().expect_err("it is wrong").to_string()
    };
    // Each lane stores its number.
    let body = "ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
        st.global.u32 [%d2], %r0;";
    let iota = one_block("iota", ".param .u64 out", body);
    on_emulator(&iota, out(32)).assert_clean();
    let outside = not_clean(&iota, out(31));
    assert!(outside.contains("out_of_bounds"), "{outside}");
    assert!(outside.ends_with("], buffer `out`"), "{outside}");
    // Two blocks store the same to the same words, which is no race; or each its own.
    let twice = on_emulator(&iota.clone().grid([2, 1, 1]), out(32));
    twice.assert_clean();
    let own = format!("{body} mov.u32 %r0, %ctaid.x; st.global.u32 [%d2], %r0;");
    let own = one_block("own", ".param .u64 out", &own).grid([2, 1, 1]);
    let differ = not_clean(&own, out(32));
    assert!(differ.contains("global_race"), "{differ}");
    let changed = not_clean(&iota, [("out", Arg::input(&[0_u32; 32]))]);
    assert_eq!(changed, "`iota` on the emulator: changed the input `out`");
    // A word that nobody wrote.
    let body = "ld.param.u64 %d0, [out]; ld.global.u32 %r0, [%d0]; st.global.u32 [%d0], %r0;";
    let reading = one_block("reading", ".param .u64 out", body).block([1, 1, 1]);
    let undefined = not_clean(&reading, out(1));
    assert!(undefined.contains("undefined_global"), "{undefined}");
    let in_out = [("out", Arg::in_out(&[7_u32]))];
    on_emulator(&reading, in_out).assert_clean();
    // Not looked for: what is read is all bits set.
    let mut options = RunOptions::default();
    options.emulator.undefined_global = false;
    let outcome = run_with(&reading, On::Emulator, out(1), &options).expect("it runs");
    outcome.assert_clean();
    assert_eq!(outcome.get::<u32>("out").expect("u32"), [u32::MAX]);
    // Several findings are a list.
    let many = not_clean(&racing(), out(3));
    assert!(many.contains("4 problems\n  "), "{many}");
}

fn claim(access: &str, op: &str, wavefronts: u32) -> AccessProof {
    AccessProof {
        access: access.to_owned(),
        op: op.parse().expect("an access"),
        wavefronts,
        ideal: 1,
        exact: true,
    }
}

/// Lanes below `lanes` store words `stride` words apart.
fn strided(stride: u32, lanes: u32) -> PtxKernel {
    let body = format!(
        ".shared .align 16 .b8 tile[4096];
        mov.u32 %r0, %tid.x; mul.lo.u32 %r1, %r0, {}; mov.u32 %r2, tile; add.s32 %r3, %r2, %r1;
        setp.lt.u32 %p0, %r0, {lanes};
        @%p0 st.shared.u32 [%r3], %r0; // write",
        4 * stride
    );
    one_block("strided", "", &body)
}

#[test]
fn wavefronts_that_differ_are_not_counted_as_proven() {
    let counted = |kernel: PtxKernel| on_emulator(&kernel, []).counted_as_proven();
    for (stride, wavefronts) in [(1, 1), (2, 2), (8, 8), (32, 32), (33, 1)] {
        let kernel = strided(stride, 32).access(claim("write", "st.32", wavefronts));
        assert_eq!(counted(kernel), Ok(()), "{stride}");
    }
    let differ = |kernel: PtxKernel, reason: &str| {
        let error = counted(kernel).expect_err(reason);
        assert_eq!(error.reasons, [reason]);
    };
    for claimed in [1, 3] {
        differ(
            strided(2, 32).access(claim("write", "st.32", claimed)),
            &format!("the access `write` took 2 wavefronts, and {claimed} are proven"),
        );
    }
    // Never executed, and never by all lanes.
    differ(
        strided(1, 0).access(claim("write", "st.32", 1)),
        "the access `write` was never executed",
    );
    differ(
        strided(2, 16).access(claim("write", "st.32", 2)),
        "the access `write` took at most 1 of 2 proven wavefronts, with lanes inactive",
    );
    differ(strided(1, 32), "nothing is proven of line 9, st.shared.u32");
    // An access of another name covers nothing.
    let other = counted(strided(1, 32).access(claim("read", "ld.32", 1))).expect_err("two");
    assert_eq!(other.reasons.len(), 2, "{other}");
    let outcome = on_emulator(&strided(2, 32).access(claim("write", "st.32", 1)), []);
    outcome.assert_clean();
    let message = failure(move || outcome.assert_counted_as_proven());
    assert_eq!(
        message,
        "not counted as proven: `strided` on the emulator: the access `write` took 2 wavefronts, and 1 are proven"
    );
}

/// A kernel with two ways to do the same, each a store and a load, of which `parity` takes one.
struct TwoWays {
    kernel: PtxKernel,
    ways: [[&'static str; 2]; 2],
}

impl Runnable for TwoWays {
    fn ptx(&self) -> &str {
        self.kernel.ptx()
    }

    fn entry(&self) -> &str {
        self.kernel.entry()
    }

    fn params(&self) -> Vec<Param> {
        self.kernel.params()
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        self.kernel.launches(scalars)
    }

    fn accesses(&self) -> Vec<AccessProof> {
        self.kernel.accesses()
    }

    fn alternatives(&self) -> Vec<Vec<String>> {
        let names = |way: &[&str; 2]| way.map(str::to_owned).to_vec();
        self.ways.iter().map(names).collect()
    }
}

/// What a run leaves out is named apart from what differs, and only if it is a whole way and the run took another one whole.
#[test]
fn ways_that_a_run_did_not_take_are_no_disagreement() {
    // The second load is left out where `half` is 1.
    let body = ".shared .align 16 .b8 tile[128];
        ld.param.u32 %r0, [parity]; ld.param.u32 %r1, [half]; mov.u32 %r2, %tid.x;
        shl.b32 %r3, %r2, 2; mov.u32 %r2, tile; add.s32 %r3, %r3, %r2;
        setp.eq.u32 %p0, %r0, 1;
        @%p0 bra ODD;
        st.shared.u32 [%r3], %r0; // stageA
        setp.eq.u32 %p0, %r1, 1;
        @%p0 bra END;
        ld.shared.u32 %r0, [%r3]; // fetchA
        bra END;
        ODD: st.shared.u32 [%r3], %r0; // stageB
        ld.shared.u32 %r0, [%r3]; // fetchB
        END:";
    let names = ["stageA", "fetchA", "stageB", "fetchB"];
    let run = |ways, [parity, half]: [u32; 2], wavefronts| {
        let kernel = one_block("ways", ".param .u32 parity, .param .u32 half", body);
        let op = |name: &str| {
            if name.starts_with("st") {
                "st.32"
            } else {
                "ld.32"
            }
        };
        let kernel = names.iter().fold(kernel, |kernel, name| {
            kernel.access(claim(name, op(name), wavefronts))
        });
        let args = [("parity", Arg::from(parity)), ("half", Arg::from(half))];
        let outcome = on_emulator(&TwoWays { kernel, ways }, args);
        let reasons = outcome
            .counted_as_proven()
            .err()
            .map_or(Vec::new(), |e| e.reasons);
        (outcome.not_taken, reasons)
    };
    let ways = [["stageA", "fetchA"], ["stageB", "fetchB"]];
    let never = |names: &[&str]| -> Vec<String> {
        let reason = |name: &&str| format!("the access `{name}` was never executed");
        names.iter().map(reason).collect()
    };
    let (none, a, b) = (
        Vec::<String>::new(),
        ways[0].map(str::to_owned),
        ways[1].map(str::to_owned),
    );
    assert_eq!(run(ways, [0, 0], 1), (b.to_vec(), none.clone()));
    assert_eq!(run(ways, [1, 0], 1), (a.to_vec(), none.clone()));
    // A disagreement of the way that was taken stays one.
    let (left, reasons) = run(ways, [1, 0], 2);
    assert_eq!(left, a);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons
            .iter()
            .all(|r| r.ends_with("took 1 wavefronts, and 2 are proven")),
        "{reasons:?}"
    );
    // A way that was taken in part does not count.
    let missing = never(&["fetchA", "stageB", "fetchB"]);
    assert_eq!(run(ways, [0, 1], 1), (none.clone(), missing));
    // Without a name of its own a way cannot be taken.
    let strangers = [["stageA", "fetchA"], ["x", "y"]];
    assert_eq!(run(strangers, [1, 0], 1), (none, never(&ways[0])));
}
