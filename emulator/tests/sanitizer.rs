//! Each check of the sanitizer with a planted bug, which must be found, and its corrected twin, which must be clean.

mod common;

use common::{block, kinds, launch_with, with_out};
use ptx_emulator::{Arg, FindingKind as Kind, GlobalMemory, Launch, Module, Options, run};

/// `bad` gives exactly findings of `kind`, at a line that contains `at`; `good` gives none.
fn planted(kind: Kind, threads: u32, bad: &str, at: &str, good: &str) {
    let text = with_out(bad);
    let (_, report) = block(bad, threads, 256);
    assert_eq!(kinds(&report), [kind], "{bad}\n{:#?}", report.findings);
    let line = text
        .lines()
        .nth(report.findings[0].line as usize - 1)
        .expect("a line of the text");
    assert!(
        line.contains(at),
        "{} points at `{line}`",
        report.findings[0]
    );
    let (_, report) = block(good, threads, 256);
    assert!(report.is_clean(), "{good}\n{:#?}", report.findings);
}

#[test]
fn global_out_of_bounds() {
    planted(
        Kind::OutOfBounds,
        32,
        "st.global.u32 [%mine+900], %tid;",
        "st.global",
        "st.global.u32 [%mine+896], %tid;",
    );
    planted(
        Kind::OutOfBounds,
        32,
        "ld.global.u32 %r1, [%out+-4];",
        "ld.global",
        "ld.global.u32 %r1, [%out];",
    );
    planted(
        Kind::OutOfBounds,
        32,
        "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+1016];",
        "v4",
        "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+1008];",
    );
    planted(
        Kind::OutOfBounds,
        32,
        "mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];",
        "ld.global",
        "ld.global.u32 %r1, [%out];",
    );
}

#[test]
fn shared_param_and_local_out_of_bounds() {
    let shared = |offset| {
        format!(
            ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r1, %tid, 4, %r1;\nst.shared.u32 [%r1+{offset}], %tid;"
        )
    };
    planted(Kind::OutOfBounds, 32, &shared(4), "st.shared", &shared(0));
    planted(
        Kind::OutOfBounds,
        32,
        "ld.param.u64 %rd1, [out+8];",
        "ld.param",
        "ld.param.u64 %rd1, [out];",
    );
    let local = |offset| {
        format!(
            ".local .align 4 .b8 l[16]; mov.u32 %r1, l;\nst.local.u32 [%r1+{offset}], %tid; ld.local.u32 %r2, [%r1+12];"
        )
    };
    planted(Kind::OutOfBounds, 32, &local(16), "st.local", &local(12));
}

#[test]
fn misaligned() {
    planted(
        Kind::Misaligned,
        1,
        "st.global.u32 [%out+2], %tid;",
        "st.global",
        "st.global.u16 [%out+2], %tid;",
    );
    let shared = |offset| {
        format!(".shared .align 16 .b8 s[64];\nst.shared.v2.u32 [s+{offset}], {{%tid, %tid}};")
    };
    planted(Kind::Misaligned, 1, &shared(4), "st.shared", &shared(8));
}

/// `tests/undefined.rs` has more of these.
#[test]
fn undefined_registers() {
    let used = "st.global.u32 [%mine], %r1;";
    planted(
        Kind::UndefinedRegister,
        32,
        &format!("add.u32 %r1, %r2, 1;\n{used}"),
        "st.global",
        &format!("mov.u32 %r2, 5; add.u32 %r1, %r2, 1;\n{used}"),
    );
    // Defined only in some lanes.
    let bad =
        format!("setp.lt.u32 %p1, %tid, 7;\n@%p1 mov.u32 %r2, 5;\nadd.u32 %r1, %r2, 1;\n{used}");
    planted(
        Kind::UndefinedRegister,
        32,
        &bad,
        "st.global",
        &format!("mov.u32 %r2, 4;{bad}"),
    );
    // Used only where defined.
    let (_, report) = block(
        &format!(
            "setp.lt.u32 %p1, %tid, 7;\n@%p1 mov.u32 %r2, 5;\n@%p1 add.u32 %r1, %r2, 1;\n@%p1 {used}"
        ),
        32,
        32,
    );
    assert!(report.is_clean());
    let (_, report) = block(
        &format!(
            "setp.lt.u32 %p1, %tid, 7;\n@%p1 mov.u32 %r2, 5;\nselp.u32 %r1, %r2, 9, %p1;\n{used}"
        ),
        32,
        32,
    );
    assert!(report.is_clean());
    planted(
        Kind::UndefinedRegister,
        32,
        "@%p3 mov.u32 %r1, 1;",
        "@%p3",
        "setp.eq.u32 %p3, %tid, 0; @%p3 mov.u32 %r1, 1;",
    );
    // A loop that reads before its first iteration writes.
    let bad = "mov.u32 %r1, 0;\nL: add.u32 %r2, %r3, 1;\nst.global.u32 [%mine], %r2;\nmov.u32 %r3, %r1;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 3;\n@%p1 bra L;";
    planted(
        Kind::UndefinedRegister,
        32,
        bad,
        "st.global",
        &format!("mov.u32 %r3, 0; {bad}"),
    );
    let (_, report) = block("st.global.u32 [%mine], %r2;", 32, 32);
    let text = report.findings[0].to_string();
    assert!(
        text.starts_with("undefined_register: line ")
            && text.contains("%r2")
            && text.contains("lanes 0-31"),
        "{text}"
    );
}

#[test]
fn undefined_shared() {
    let body = |store: &str| {
        format!(
            ".shared .align 4 .b8 s[256]; mov.u32 %r1, s; mad.lo.u32 %r1, %tid, 4, %r1;\n{store}\nld.shared.u32 %r2, [%r1];\nst.global.u32 [%mine], %r2;"
        )
    };
    planted(
        Kind::UndefinedShared,
        32,
        &body(""),
        "st.global",
        &body("st.shared.u32 [%r1], %tid;"),
    );
    let half = "setp.lt.u32 %p1, %tid, 31; @%p1 st.shared.u32 [%r1], %tid;";
    planted(
        Kind::UndefinedShared,
        32,
        &body(half),
        "st.global",
        &body("st.shared.u32 [%r1], %tid;"),
    );
}

/// Thread t writes word t and reads word t + 32 (mod 64) of another warp.
fn exchange(between: &str, after: &str) -> String {
    format!(
        ".shared .align 4 .b8 s[256]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 4, %r1;
    xor.b32 %r3, %tid, 32; mad.lo.u32 %r3, %r3, 4, %r1;
    st.shared.u32 [%r2], %tid;
    {between}
    ld.shared.u32 %r4, [%r3];
    {after}
    st.shared.u32 [%r2], %r4; // again
    st.global.u32 [%mine], %r4;"
    )
}

#[test]
fn races_between_barriers() {
    // The second warp reads what the first wrote; the first, run before, reads what is not written yet.
    let (_, report) = block(&exchange("", "bar.sync 0;"), 64, 256);
    assert!(
        kinds(&report).contains(&Kind::SharedRace),
        "{:#?}",
        report.findings
    );
    planted(
        Kind::SharedRace,
        64,
        &exchange("bar.sync 0;", ""),
        "shared.u32",
        &exchange("bar.sync 0;", "bar.sync 0;"),
    );
    let (data, report) = block(&exchange("bar.sync 3;", "bar.sync 0, 64;"), 64, 64);
    assert!(report.is_clean());
    assert_eq!(data, (0..64).map(|t| t ^ 32).collect::<Vec<u32>>());
    // Within a warp the order of instructions is enough.
    let (_, report) = block(&exchange("", "").replace("32;", "16;"), 64, 256);
    assert!(report.is_clean(), "{:#?}", report.findings);
}

#[test]
fn bytes_of_one_word_are_told_apart() {
    let body = |step: u32| {
        format!(
            ".shared .align 4 .b8 s[256]; mov.u32 %r1, s; mul.lo.u32 %r2, %warp, {step};
    add.u32 %r2, %r1, %r2; setp.eq.u32 %p1, %lane, 0; cvt.u16.u32 %h1, %warp;
    @%p1 st.shared.u8 [%r2], %h1;"
        )
    };
    planted(Kind::SharedRace, 64, &body(0), "st.shared", &body(1));
}

#[test]
fn producer_and_consumer_with_named_barriers() {
    // Warp 0 fills a buffer twice for warp 1, by bar.arrive and bar.sync, as in the ISA's example.
    let body = |wait: &str| {
        format!(
            ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; mov.u32 %r9, 0;
    setp.eq.u32 %p1, %warp, 0;
    mov.u32 %r5, 0;
    @!%p1 bra CONSUMER;
PRODUCE: {wait}
    add.u32 %r6, %r5, %lane;
    st.shared.u32 [%r2], %r6;
    bar.arrive 1, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 4;
    @%p2 bra PRODUCE;
    bra END;
CONSUMER: bar.arrive 2, 64;
CONSUME: bar.sync 1, 64;
    ld.shared.u32 %r7, [%r2];
    add.u32 %r9, %r9, %r7;
    add.u32 %r5, %r5, 1;
    setp.eq.u32 %p2, %r5, 4;
    @%p2 bra END;
    bar.arrive 2, 64;
    bra CONSUME;
END: st.global.u32 [%mine], %r9;"
        )
    };
    let (data, report) = block(&body("bar.sync 2, 64;"), 64, 64);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(data[32..], (0..32).map(|l| 4 * l + 6).collect::<Vec<u32>>());
    // The consumer says that it has read before it has.
    let early = body("bar.sync 2, 64;").replace(
        "CONSUME: bar.sync 1, 64;",
        "CONSUME: bar.sync 1, 64; bar.arrive 2, 64;",
    );
    let early = early.replace(
        "    bar.arrive 2, 64;\n    bra CONSUME;",
        "    bra CONSUME;",
    );
    let (_, report) = block(&early, 64, 64);
    assert!(
        kinds(&report).contains(&Kind::SharedRace),
        "{:#?}",
        report.findings
    );
    // The producer does not wait at all.
    let (_, report) = block(&body("").replace("bar.arrive 2, 64;", ""), 64, 64);
    assert!(
        kinds(&report).contains(&Kind::BarrierMismatch),
        "{:#?}",
        report.findings
    );
}

#[test]
fn lanes_storing_different_values_to_one_place() {
    let body = |value: &str| format!(".shared .align 4 .b8 s[4];\nst.shared.u32 [s], {value};");
    planted(
        Kind::WriteConflict,
        32,
        &body("%tid"),
        "st.shared",
        &body("7"),
    );
}

#[test]
fn barrier_in_divergent_code() {
    let bad = "setp.lt.u32 %p1, %tid, 16;\n@%p1 bra L;\nmov.u32 %r1, 1;\nbar.sync 0; // else\nL: mov.u32 %r2, 1;";
    let (_, report) = block(bad, 32, 1);
    assert!(
        kinds(&report).contains(&Kind::Divergent),
        "{:#?}",
        report.findings
    );
    assert!(
        report.findings[0].message.contains("16-31"),
        "{}",
        report.findings[0]
    );
    // A guarded barrier in some lanes only.
    let (_, report) = block(
        "setp.lt.u32 %p1, %tid, 16;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 0;",
        32,
        1,
    );
    assert!(kinds(&report).contains(&Kind::Divergent));
    // Unaligned barriers may be reached apart.
    let (_, report) = block(
        "setp.lt.u32 %p1, %tid, 16;\n@%p1 barrier.sync 0;\n@!%p1 barrier.sync 0;",
        64,
        1,
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
}

#[test]
fn deadlocks() {
    let bad = "setp.lt.u32 %p1, %tid, 32;\n@%p1 bra L;\nbarrier.sync 1;\nbra E;\nL: barrier.sync 0;\nE: mov.u32 %r2, 1;";
    planted(
        Kind::Deadlock,
        64,
        bad,
        "barrier.sync",
        &bad.replace("barrier.sync 1", "barrier.sync 0"),
    );
    planted(
        Kind::Deadlock,
        64,
        "bar.sync 0, 96;",
        "bar.sync",
        "bar.sync 0, 64;",
    );
    let (_, report) = block(
        "setp.eq.u32 %p1, %lane, 3; @%p1 bra L; bar.warp.sync 0xffffffff;\nL: bar.warp.sync 0xfffffff7;\nbar.warp.sync -1;",
        32,
        1,
    );
    assert_eq!(kinds(&report), [Kind::Deadlock], "{:#?}", report.findings);
}

#[test]
fn barrier_operands() {
    let (_, report) = block("mov.u32 %r1, 16; bar.sync %r1;", 32, 1);
    assert_eq!(kinds(&report), [Kind::BadOperand]);
    let (_, report) = block("mov.u32 %r1, 33; bar.sync 0, %r1;", 32, 1);
    assert_eq!(kinds(&report), [Kind::BadOperand]);
}

#[test]
fn member_masks() {
    let bad = "setp.lt.u32 %p1, %tid, 16;\n@%p1 shfl.sync.idx.b32 %r1, %tid, 0, 31, 0xffffffff;";
    let good = "setp.lt.u32 %p1, %tid, 16;\n@%p1 shfl.sync.idx.b32 %r1, %tid, 0, 31, 0x0000ffff;";
    planted(Kind::MemberMask, 32, bad, "shfl", good);
    planted(
        Kind::MemberMask,
        32,
        "setp.lt.u32 %p1, %tid, 16;\n@%p1 shfl.sync.idx.b32 %r1, %tid, 20, 31, 0x0000ffff;",
        "shfl",
        good,
    );
}

#[test]
fn endless_loops_and_traps() {
    let options = Options {
        step_limit: 10_000,
        ..Options::default()
    };
    let (_, report) = launch_with(&with_out("L: bra L;"), [4, 1, 1], [32, 1, 1], 1, &options);
    assert_eq!(kinds(&report), [Kind::StepLimit]);
    let (_, report) = launch_with(&with_out("trap;"), [2, 1, 1], [64, 1, 1], 1, &options);
    assert_eq!(kinds(&report), [Kind::Trap]);
    assert_eq!(report.findings[0].count, 2);
}

#[test]
fn blocks_racing_in_global_memory() {
    let options = Options {
        global_races: true,
        ..Options::default()
    };
    let run = |body: &str| launch_with(&with_out(body), [8, 1, 1], [32, 1, 1], 256, &options).1;
    let own = "mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd1, %r1, 128, %mine;";
    assert!(
        run(&format!(
            "{own} st.global.u32 [%rd1], %tid; ld.global.u32 %r2, [%rd1];"
        ))
        .is_clean()
    );
    assert_eq!(
        kinds(&run("mov.u32 %r1, %ctaid.x; st.global.u32 [%mine], %r1;")),
        [Kind::GlobalRace]
    );
    // One value from all blocks.
    assert!(run("st.global.u32 [%mine], %tid;").is_clean());
    assert_eq!(
        kinds(&run(&format!(
            "{own} st.global.u32 [%rd1], %tid; ld.global.u32 %r2, [%out+512];"
        ))),
        [Kind::GlobalRace]
    );
    assert!(run("ld.global.u32 %r2, [%out];").is_clean());
    assert!(run("red.global.add.u32 [%out], 1;").is_clean());
}

#[test]
fn global_memory_that_nobody_wrote() {
    use ptx_emulator::{Arg, GlobalMemory, Launch, Module, run};
    let module = Module::parse(&with_out(
        "ld.global.u32 %r1, [%mine]; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 1;",
    ))
    .expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(128, 256).expect("memory");
    memory.write(out, &[0; 64]).expect("a write");
    let launch = Launch {
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let options = Options {
        undefined_global: true,
        ..Options::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &options).expect("a launch");
    assert_eq!(kinds(&report), [Kind::UndefinedGlobal]);
    memory.write(out + 64, &[0; 64]).expect("a write");
    assert!(
        run(&module, "k", &launch, &mut memory, &options)
            .expect("a launch")
            .is_clean()
    );
}

/// Thread t copies word t, waits, and reads word (t + shift) mod 64.
fn copy(shift: u32, wait: &str, barrier: &str) -> String {
    format!(
        ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 4, %r1;
    add.u32 %r3, %tid, {shift}; and.b32 %r3, %r3, 63; mad.lo.u32 %r4, %r3, 4, %r1;
    st.shared.u32 [%r2], %tid;
    bar.sync 0;
    cp.async.ca.shared.global [%r2], [%mine], 4;
    cp.async.commit_group;
    {wait}
    {barrier}
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%mine+512], %r5;"
    )
}

#[test]
fn asynchronous_copies() {
    let wait = "cp.async.wait_group 0;";
    planted(
        Kind::ReadBeforeWait,
        64,
        &copy(0, "", ""),
        "ld.shared",
        &copy(0, wait, ""),
    );
    planted(
        Kind::ReadBeforeWait,
        64,
        &copy(0, "cp.async.wait_group 1;", ""),
        "ld.shared",
        &copy(0, "cp.async.wait_all;", ""),
    );
    // Another lane's copy in the same warp, and another warp's.
    planted(
        Kind::MissingBarrierAfterWait,
        32,
        &copy(1, wait, "").replace("63", "31"),
        "ld.shared",
        &copy(1, wait, "bar.warp.sync 0xffffffff;").replace("63", "31"),
    );
    let (_, report) = block(&copy(32, wait, ""), 64, 256);
    assert!(
        kinds(&report)
            .iter()
            .any(|k| matches!(k, Kind::SharedRace | Kind::ReadBeforeWait)),
        "{:#?}",
        report.findings
    );
    let (_, report) = block(&copy(32, wait, "bar.sync 0;"), 64, 256);
    assert!(report.is_clean(), "{:#?}", report.findings);
}

#[test]
fn data_of_a_copy_lands_at_the_wait() {
    // out: what was read before the wait (old) and after.
    let body = ".shared .align 16 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 4, %r1; mov.u32 %r9, 77;
    st.global.u32 [%mine], %r9; add.u32 %r8, %tid, 100;
    st.shared.u32 [%r2], %r8;
    cp.async.ca.shared.global [%r2], [%mine], 4;
    cp.async.commit_group;
    ld.shared.u32 %r3, [%r2];
    cp.async.wait_group 0;
    ld.shared.u32 %r4, [%r2];
    st.global.u32 [%mine], %r3; st.global.u32 [%mine+128], %r4;";
    let (data, report) = block(body, 32, 64);
    assert_eq!(kinds(&report), [Kind::ReadBeforeWait]);
    assert_eq!(data[..32], (100..132).collect::<Vec<u32>>());
    assert_eq!(data[32..], [77; 32]);
}

#[test]
fn overwriting_a_buffer_that_is_still_read() {
    // Two warps; warp 1 reads what warp 0 then overwrites by a copy, with or without a barrier.
    let body = |barrier: &str| {
        format!(
            ".shared .align 16 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; setp.eq.u32 %p1, %warp, 0;
    @%p1 st.shared.u32 [%r2], %tid;
    bar.sync 0;
    ld.shared.u32 %r3, [%r2];
    {barrier}
    @%p1 bra SKIP;
    cp.async.ca.shared.global [%r2], [%out], 4;
SKIP: cp.async.wait_all;"
        )
    };
    planted(
        Kind::SharedRace,
        64,
        &body(""),
        "cp.async.ca",
        &body("bar.sync 0;"),
    );
}

#[test]
fn copies_with_zero_fill() {
    // Source sizes 0, 4, 8, … 16 and an ignored source; 16 bytes a thread.
    let body = ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 16, %r1;
    mad.wide.u32 %rd1, %tid, 16, %out; mov.u32 %r3, -1;
    st.global.v4.u32 [%rd1], {%r3, %r3, %r3, %r3};
    min.u32 %r4, %tid, 4; shl.b32 %r4, %r4, 2;
    setp.eq.u32 %p1, %tid, 7; setp.eq.u32 %p2, %tid, 6;
    @!%p1 cp.async.cg.shared.global.L2::128B [%r2], [%rd1], 16, %r4;
    @%p1 cp.async.ca.shared.global [%r2], [%rd1], 16, %p1;
    cp.async.wait_all;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r2];
    st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r8};";
    let (data, report) = block(body, 8, 32);
    assert!(report.is_clean(), "{:#?}", report.findings);
    for t in 0..8 {
        let words = if t == 7 { 0 } else { t.min(4) };
        for w in 0..4 {
            assert_eq!(
                data[4 * t + w],
                if w < words { u32::MAX } else { 0 },
                "thread {t} word {w}"
            );
        }
    }
    // A source past the end is not read if its size is zero.
    let body = |n: u32| {
        format!(
            ".shared .align 16 .b8 s[16]; mov.u32 %r1, {n};\ncp.async.ca.shared.global [s], [%out+1024], 4, %r1; cp.async.wait_all;"
        )
    };
    planted(Kind::OutOfBounds, 1, &body(4), "cp.async.ca", &body(0));
}

#[test]
fn matrix_instructions() {
    let load = |rows: u32, guard: &str| {
        format!(
            ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 16, %r1; setp.lt.u32 %p1, %tid, 16;
    st.shared.v4.u32 [%r2], {{%tid, %tid, %tid, %tid}};
    mad.lo.u32 %r3, %tid, {rows}, %r1;\n{guard} ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4,%r5,%r6,%r7}}, [%r3];"
        )
    };
    planted(
        Kind::OutOfBounds,
        32,
        &load(32, ""),
        "ldmatrix",
        &load(16, ""),
    );
    planted(Kind::Misaligned, 32, &load(8, ""), "ldmatrix", &load(0, ""));
    planted(
        Kind::Divergent,
        32,
        &load(16, "@%p1"),
        "ldmatrix",
        &load(16, ""),
    );
    let mma = |guard: &str| {
        format!(
            "mov.u32 %r1, 0; mov.f32 %f1, 0f00000000; setp.lt.u32 %p1, %tid, 16;
    {guard} mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f2,%f3,%f4,%f5}}, {{%r1,%r1,%r1,%r1}}, {{%r1,%r1}}, {{%f1,%f1,%f1,%f1}};"
        )
    };
    planted(Kind::Divergent, 32, &mma("@%p1"), "mma", &mma(""));
}

#[test]
fn findings_are_counted_and_limited() {
    let body = "ld.global.u32 %r1, [%out+2048];\nbar.sync 0;\nld.global.u32 %r1, [%out+4096];\nst.global.u32 [%out+8192], %tid;";
    let options = Options {
        max_findings: 2,
        ..Options::default()
    };
    let (_, report) = launch_with(&with_out(body), [5, 1, 1], [64, 1, 1], 16, &options);
    assert_eq!((report.findings.len(), report.total_findings), (2, 3));
    assert_eq!(report.findings[0].count, 10);
    assert_eq!(report.findings[0].block, [0, 0, 0]);
}

/// With the sanitizer off, the same program gives the same data and no findings about registers or races.
#[test]
fn without_the_sanitizer() {
    let options = Options {
        sanitize: false,
        ..Options::default()
    };
    let (data, report) = launch_with(
        &with_out(&exchange("bar.sync 0;", "bar.sync 0;")),
        [1; 3],
        [64, 1, 1],
        64,
        &options,
    );
    assert!(report.is_clean());
    assert_eq!(data, (0..64).map(|t| t ^ 32).collect::<Vec<u32>>());
}

#[test]
fn findings_name_the_source_line_and_one_cause_is_one_finding() {
    // Two stores past the end of the buffer, unrolled from one line, and a third of another line.
    let text = "\
.version 8.0
.target sm_80
.address_size 64
.file 1 \"fill.cu\"
.file 2 \"store.cuh\"
.visible .entry k(.param .u64 out)
{
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    .loc 1 7 3
    st.global.b32 [%out+4096], 1;
    st.global.b32 [%out+8192], 2;
    .loc 2 3 9, function_name $L__info0, inlined_at 1 9 5
    st.global.b32 [%out+12288], 3;
    ret;
}
";
    let module = Module::parse(text).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(64, 256).expect("memory");
    let launch = Launch {
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|f| {
            let source = f.source.as_ref().map(ToString::to_string);
            (f.line, f.also.clone(), source.unwrap_or_default(), f.count)
        })
        .collect();
    assert_eq!(
        found,
        [
            (11, vec![12], "fill.cu:7".to_owned(), 2),
            (
                14,
                vec![],
                "store.cuh:3, inlined at fill.cu:9".to_owned(),
                1
            ),
        ]
    );
    let shown = report.findings[0].to_string();
    assert!(
        shown.starts_with("out_of_bounds: line 11 (fill.cu:7): st.global.b32: "),
        "{shown}"
    );
    assert!(shown.ends_with("] and so in line 12"), "{shown}");
    // Without the directives a stretch without branches and barriers is one cause.
    let plain: String = text
        .lines()
        .filter(|l| !l.contains(".loc"))
        .flat_map(|l| [l, "\n"])
        .collect();
    let module = Module::parse(&plain).expect("valid PTX");
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert_eq!(report.total_findings, 1);
    assert_eq!(report.findings[0].also, [11, 12]);
    assert_eq!(report.findings[0].source, None);
}

#[test]
fn loops_that_never_end_are_found_without_a_limit() {
    let options = Options::default();
    let flag = "L: ld.volatile.global.u32 %r1, [%out];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;";
    let lock = "L: atom.global.cas.b32 %r1, [%out], 1, 2;\nsetp.ne.u32 %p1, %r1, 1;\n@%p1 bra L;";
    for body in ["L: bra L;", flag, lock] {
        let (_, report) = launch_with(&with_out(body), [6, 1, 1], [96, 1, 1], 1, &options);
        assert_eq!(kinds(&report), [Kind::EndlessLoop], "{body}");
    }
    // Another block lets it go, after a long time.
    let late = "mov.u32 %r1, %ctaid.x;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra W;
        mov.u32 %r2, 0;
        S: add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, 3000000;
        @%p1 bra S;
        st.volatile.global.u32 [%out], 1;
        bra E;
        W: ld.volatile.global.u32 %r1, [%out];
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra W;
        E:";
    let two = Options {
        workers: 2,
        ..Options::default()
    };
    let (_, report) = launch_with(&with_out(late), [2, 1, 1], [1, 1, 1], 1, &two);
    assert_eq!(kinds(&report), []);
}
