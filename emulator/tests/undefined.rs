//! Undefined values: moving them is no finding, using them is, with the place of the use and of the origin.

mod common;

use common::{Random, block, kinds, launch_with, with_out};
use ptx_emulator::{FindingKind as Kind, Options, Report};

fn report(body: &str) -> Report {
    block(body, 64, 64).1
}

fn silent(what: &str, body: &str) {
    let report = report(body);
    assert!(report.is_clean(), "{what}: {body}\n{:#?}", report.findings);
}

/// One finding of `kind`, in the last line of `body` that has `at`, whose message has each of `says`.
fn found(what: &str, kind: Kind, body: &str, at: &str, says: &[&str]) {
    let report = report(body);
    assert_eq!(
        kinds(&report),
        [kind],
        "{what}: {body}\n{:#?}",
        report.findings
    );
    let finding = &report.findings[0];
    let text = with_out(body);
    let line = text.lines().nth(finding.line as usize - 1).unwrap_or("");
    assert!(line.contains(at), "{what}: {finding} points at `{line}`");
    for say in says {
        assert!(finding.message.contains(say), "{what}: {finding}");
    }
}

const SHARED: &str = ".shared .align 16 .b8 s[1024]; .reg .b32 %at; mov.u32 %at, s; mad.lo.u32 %at, %tid, 16, %at;\n";
const LOCAL: &str = ".local .align 16 .b8 l[64]; .reg .b64 %la; mov.u64 %la, l;\n";

/// `%r1` is never written. Each way leaves its value in `%r2`, still undefined.
const MOVES: [(&str, &str); 17] = [
    ("mov", "mov.b32 %r2, %r1;"),
    (
        "selp",
        "setp.lt.u32 %p1, %tid, 70; selp.b32 %r2, %r1, 5, %p1;",
    ),
    (
        "negated selp",
        "setp.ge.u32 %p1, %tid, 70; selp.b32 %r2, %r1, 5, !%p1;",
    ),
    ("slct", "slct.b32.s32 %r2, %r1, 5, %tid;"),
    ("shfl", "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;"),
    ("prmt", "prmt.b32 %r2, %r1, 0, 0x3120;"),
    (
        "pack and unpack",
        "mov.b64 %rd1, {%tid, %r1}; mov.b64 {%r3, %r2}, %rd1;",
    ),
    (
        "halves",
        "mov.b32 {%h1, %h2}, %r1; mov.b32 %r2, {%h2, %h1};",
    ),
    (
        "shift",
        "cvt.u64.u32 %rd1, %r1; shl.b64 %rd1, %rd1, 32; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r2, %rd1;",
    ),
    ("funnel shift", "shf.l.wrap.b32 %r2, %r1, %r1, 8;"),
    (
        "movmatrix",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;",
    ),
    (
        "shared memory",
        "st.shared.b32 [%at], %r1; bar.sync 0; ld.shared.b32 %r2, [%at];",
    ),
    (
        "a vector in shared memory",
        "st.shared.v4.b32 [%at], {%tid, %r1, %tid, %tid}; bar.sync 0; ld.shared.v4.b32 {%r3, %r2, %r4, %r5}, [%at];",
    ),
    (
        "generic shared memory",
        "cvt.u64.u32 %rd1, %at; cvta.shared.u64 %rd1, %rd1; st.b32 [%rd1], %r1; ld.b32 %r2, [%rd1];",
    ),
    (
        "local memory",
        "st.local.b32 [%la+4], %r1; ld.local.b32 %r2, [%la+4];",
    ),
    (
        "generic local memory",
        "cvta.local.u64 %rd1, %la; st.v2.b32 [%rd1], {%r1, %tid}; ld.b32 %r2, [%rd1];",
    ),
    (
        "vectors",
        ".reg .v2 .b32 %v, %w; mov.b32 %v.x, %r1; mov.b32 %v.y, 1; mov.v2.b32 %w, %v; mov.b32 %r2, %w.x;",
    ),
];

#[test]
fn moves_are_silent_and_uses_behind_them_are_found() {
    for (what, how) in MOVES {
        let body = format!("{SHARED}{LOCAL}{how}\n");
        silent(what, &body);
        let uses = [
            (
                "st.global.b32 [%mine], %r2;",
                "st.global",
                "stored to global memory",
            ),
            (
                "add.u32 %r9, %r2, 1;\nxor.b32 %r9, %r9, %r3;\nst.global.b32 [%mine], %r9;",
                "st.global",
                "stored to global memory",
            ),
            (
                "setp.eq.u32 %p2, %r2, 7;\n@%p2 mov.u32 %r9, 1;",
                "@%p2",
                "used as a guard",
            ),
            (
                "setp.eq.u32 %p2, %r2, 7;\n@%p2 bra L;\nL:",
                "bra L",
                "used as a guard",
            ),
            (
                "and.b32 %r9, %r2, 4;\ncvt.u64.u32 %rd9, %r9;\nadd.u64 %rd9, %rd9, %out;\nld.global.b32 %r9, [%rd9];",
                "ld.global",
                "used as an address",
            ),
            (
                "and.b32 %r9, %r2, 15;\nbar.sync %r9, 64;",
                "bar.sync",
                "is used",
            ),
            ("red.global.add.u32 [%out], %r2;", "red.global", "is used"),
            (
                "cvt.rn.f32.u32 %f1, %r2;\nfma.rn.f32 %f2, %f1, %f1, %f1;\nst.global.f32 [%mine], %f2;",
                "st.global",
                "stored to global memory",
            ),
        ];
        let setup = "mov.u32 %r3, 9;\n";
        for (used, at, how) in uses {
            let body = format!("{setup}{body}{used}");
            // A barrier whose number is undefined may be any: only the first finding counts.
            let report = report(&body);
            let finding = report
                .findings
                .iter()
                .find(|f| f.kind == Kind::UndefinedRegister);
            let finding =
                finding.unwrap_or_else(|| panic!("{what}, {used}: nothing found in\n{body}"));
            let text = with_out(&body);
            let line = text.lines().nth(finding.line as usize - 1).unwrap_or("");
            assert!(line.contains(at), "{what}: {finding} points at `{line}`");
            assert!(finding.message.contains(how), "{what}: {finding}");
            assert!(
                finding.message.contains("%r1"),
                "{what}: the origin is missing: {finding}"
            );
        }
    }
}

#[test]
fn a_sum_of_an_uninitialised_accumulator() {
    let body = "mov.u32 %r3, 0;\nL: add.u32 %r1, %r1, %tid;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 4;\n@%p1 bra L;\nst.global.u32 [%mine], %r1;";
    found(
        "accumulator",
        Kind::UndefinedRegister,
        body,
        "st.global",
        &["%r1", "never", "lanes 0-31"],
    );
    silent("accumulator", &format!("mov.u32 %r1, 0; {body}"));
    let mma = |setup: &str| {
        format!(
            "{setup}mov.b32 %r1, 0; mov.b32 %r2, 0;
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f0, %f1, %f2, %f3}}, {{%r1, %r2}}, {{%r1}}, {{%f0, %f1, %f2, %f3}};
st.global.f32 [%mine], %f2;"
        )
    };
    found(
        "mma",
        Kind::UndefinedRegister,
        &mma("mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000;"),
        "st.global",
        &["%f2"],
    );
    silent(
        "mma",
        &mma("mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;"),
    );
}

/// Rows of A that nobody wrote make rows of D undefined, and no others.
#[test]
fn a_product_is_undefined_by_row_and_column() {
    let body = |stored: &str, a: &str, b: &str| {
        format!(
            "mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.f32 %f0, 0f00000000;
setp.lt.u32 %p1, %lane, 4;
{a}{b}
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, {{%r3}}, {{%f0, %f0, %f0, %f0}};
{stored}"
        )
    };
    let upper = "mov.b32 %r2, %r9;";
    silent(
        "rows 8 to 15",
        &body("st.global.f32 [%mine], %f1;", upper, ""),
    );
    found(
        "rows 8 to 15",
        Kind::UndefinedRegister,
        &body("st.global.f32 [%mine], %f3;", upper, ""),
        "st.global",
        &["%r9"],
    );
    // Column 0 is in lanes 4g of the first register.
    let column = "@%p1 mov.b32 %r3, %r9;";
    let report = report(&body("st.global.f32 [%mine], %f1;", "", column));
    assert_eq!(kinds(&report), [Kind::UndefinedRegister]);
    assert_eq!(report.findings[0].lanes, 0x1111_1111);
    silent("column 0", &body("st.global.f32 [%mine], %f2;", "", column));
}

#[test]
fn results_that_do_not_depend_on_it() {
    let ways = [
        "and.b32 %r2, %r1, 0;",
        "or.b32 %r2, %r1, -1;",
        "xor.b32 %r2, %r1, %r1;",
        "sub.u32 %r2, %r1, %r1;",
        "mul.lo.u32 %r2, %r1, 0;",
        "mov.u32 %r3, 0; mad.lo.s32 %r2, %r3, %r1, %tid;",
        "shl.b32 %r3, %r1, 8; and.b32 %r2, %r3, 255;",
        "mov.b32 %r3, {%h1, %h2}; mov.u16 %h3, 4; mov.b32 %r3, {%h3, %h2}; and.b32 %r2, %r3, 0xffff;",
        "mov.u16 %h3, 4; mov.b32 %r3, {%h3, %h2}; cvt.u16.u32 %h4, %r3; cvt.u32.u16 %r2, %h4;",
        "mov.b64 %rd1, {%tid, %r1}; cvt.u32.u64 %r2, %rd1;",
        "mov.b64 %rd1, {%r1, %tid}; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r2, %rd1;",
        "prmt.b32 %r2, %tid, %r1, 0x3210;",
        "bfi.b32 %r3, %tid, %r1, 0, 8; and.b32 %r2, %r3, 255;",
        "mov.b64 %rd1, {%r1, %tid}; bfe.u64 %rd1, %rd1, 32, 32; cvt.u32.u64 %r2, %rd1;",
        "lop3.b32 %r2, %r1, %tid, 0, 0xcc;",
        "lop3.b32 %r2, %r1, %tid, %tid, 0x33;",
        "setp.ne.u32 %p1, %r1, 0; setp.ge.u32 %p2, %tid, 0; or.pred %p3, %p1, %p2; selp.b32 %r2, 1, 2, %p3;",
        "setp.ne.u32 %p1, %r1, 0; setp.lt.u32 %p2, %tid, 0; and.pred %p3, %p2, !%p1; selp.b32 %r2, 1, 2, %p3;",
        "setp.eq.u32 %p1, %r1, 3; setp.lt.and.u32 %p3, %tid, 0, %p1; selp.b32 %r2, 1, 2, %p3;",
        "setp.eq.u32 %p1, %r1, 3; selp.b32 %r2, 7, 7, %p1;",
        "setp.eq.u32 %p1, %r1, %r1; selp.b32 %r2, 7, 8, %p1;",
        "or.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; selp.b32 %r2, 7, 8, %p1;",
        "setp.lt.u32 %p1, %tid, 70; selp.b32 %r2, 3, %r1, %p1;",
        "setp.eq.u32 %p1, %r1, 3; setp.eq.u32 %p2, %lane, 0; or.pred %p1, %p1, %p2; vote.sync.any.pred %p3, %p1, -1; selp.b32 %r2, 1, 2, %p3;",
    ];
    for way in ways {
        silent(
            way,
            &format!(
                "{way}\nst.global.b32 [%mine], %r2;\nsetp.eq.u32 %p9, %r2, 1;\n@%p9 mov.u32 %r9, 1;"
            ),
        );
    }
    // The same with a value that does depend on it.
    for way in [
        "and.b32 %r2, %r1, 1;",
        "xor.b32 %r2, %r1, %tid;",
        "mul.lo.u32 %r2, %r1, 3;",
        "mul.f32 %f1, %f2, 0f00000000; mov.b32 %r2, %f1;",
        "bfi.b32 %r3, %tid, %r1, 8, 8; and.b32 %r2, %r3, 15;",
        "lop3.b32 %r2, %r1, %tid, 0, 0x3c;",
        "setp.ne.u32 %p1, %r1, 0; selp.b32 %r2, 7, 8, %p1;",
        "mov.u16 %h3, 4; mov.b32 %r3, {%h3, %h2}; shr.u32 %r2, %r3, 20;",
        "add.u16 %h4, %h2, 1; mov.u16 %h3, 4; mov.b32 %r2, {%h3, %h4};",
        "add.f32 %f1, %f2, %f2; mov.f32 %f3, 0f00000000; cvt.rn.f16x2.f32 %r2, %f1, %f3;",
        "shr.s32 %r2, %r1, 31;",
        "setp.eq.u32 %p1, %r1, 3; vote.sync.ballot.b32 %r2, %p1, -1;",
        "redux.sync.add.u32 %r2, %r1, -1;",
        "match.any.sync.b32 %r2, %r1, -1;",
        "popc.b32 %r2, %r1;",
        "add.cc.u32 %r3, %r1, %tid; addc.u32 %r2, %tid, 0;",
    ] {
        let report = report(&format!("{way}\nst.global.b32 [%mine], %r2;"));
        assert_eq!(
            kinds(&report),
            [Kind::UndefinedRegister],
            "{way}: {:#?}",
            report.findings
        );
    }
}

/// Lanes and iterations: the `selp` of llama.cpp's flash attention, and lanes of an exchange that have no value.
#[test]
fn defined_in_some_lanes_or_later() {
    let keep = "mov.u32 %r3, 0;
L: add.u32 %r4, %r3, 100; setp.eq.u32 %p1, %r3, %tid; selp.b32 %r1, %r4, %r1, %p1;
add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 64; @%p2 bra L;
st.global.u32 [%mine], %r1;";
    silent("selp of the own round", keep);
    let one_less = keep.replace("%r3, 64", "%r3, 63");
    let report = report(&one_less);
    assert_eq!(kinds(&report), [Kind::UndefinedRegister]);
    assert_eq!(
        (report.findings[0].warp, report.findings[0].lanes),
        (1, 1 << 31)
    );
    // Lane l gets what lane l + 1 has; only lane 31 gets an undefined value, of its own.
    let down = "setp.ne.u32 %p1, %lane, 0; @%p1 mov.u32 %r1, 5; shfl.sync.down.b32 %r2, %r1, 1, 31, -1;\nst.global.u32 [%mine], %r2;";
    silent("shfl.down", down);
    found(
        "shfl.up",
        Kind::UndefinedRegister,
        &down.replace("down.b32 %r2, %r1, 1, 31", "up.b32 %r2, %r1, 1, 0"),
        "st.global",
        &["%r1", "lanes 0-1"],
    );
    let dead = "@%p1 mov.u32 %r1, 5;\n";
    found("a guard", Kind::UndefinedRegister, dead, "@%p1", &["%p1"]);
    silent(
        "used only where defined",
        "setp.lt.u32 %p1, %tid, 7; @%p1 mov.u32 %r2, 5; @%p1 st.global.u32 [%mine], %r2;",
    );
}

#[test]
fn shared_memory_that_nothing_wrote() {
    let tail = |used: &str| {
        format!(
            "{SHARED}setp.lt.u32 %p1, %tid, 60; @%p1 st.shared.u32 [%at], %tid; bar.sync 0;\nld.shared.u32 %r1, [%at];\n{used}"
        )
    };
    silent("a read that is not used", &tail(""));
    silent(
        "used where it was written",
        &tail("@%p1 st.global.u32 [%mine], %r1;"),
    );
    silent(
        "selected away",
        &tail("selp.u32 %r1, %r1, 0, %p1; st.global.u32 [%mine], %r1;"),
    );
    for used in [
        "st.global.u32 [%mine], %r1;",
        "add.u32 %r2, %r1, 1;\nst.global.u32 [%mine], %r2;",
        "st.shared.u32 [%at+8], %r1; ld.shared.u32 %r2, [%at+8];\nst.global.u32 [%mine], %r2;",
    ] {
        found(
            used,
            Kind::UndefinedShared,
            &tail(used),
            "st.global",
            &["shared byte 960", "lane 28", "nothing has written"],
        );
    }
    found(
        "an address",
        Kind::UndefinedShared,
        &tail("and.b32 %r1, %r1, 12; add.u32 %r1, %r1, %at;\nld.shared.u32 %r2, [%r1];").replace(
            "@%p1 st.shared.u32 [%at], %tid;",
            "@%p1 st.shared.v4.u32 [%at], {%tid, %tid, %tid, %tid};",
        ),
        "ld.shared.u32 %r2",
        &["used as an address", "shared byte 960"],
    );
    // ldmatrix: the last rows of the tile were never written.
    let matrix = |stored: &str| {
        format!(
            ".shared .align 16 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 4, %r1;
setp.lt.u32 %p1, %tid, 24; @%p1 st.shared.u32 [%r2], %tid; bar.sync 0;
and.b32 %r3, %lane, 7; mad.lo.u32 %r3, %r3, 16, %r1;
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r3];
{stored}"
        )
    };
    silent(
        "ldmatrix",
        &matrix("setp.lt.u32 %p2, %lane, 24; @%p2 st.global.u32 [%mine], %r4;"),
    );
    found(
        "ldmatrix",
        Kind::UndefinedShared,
        &matrix("st.global.u32 [%mine], %r4;"),
        "st.global",
        &["lanes 24-31", "shared byte 96"],
    );
    // stmatrix carries marks into shared memory.
    let stored = |used: &str| {
        format!(
            "{SHARED}mov.u32 %r3, 0; setp.lt.u32 %p1, %lane, 16; @%p1 mov.u32 %r1, 7;
setp.lt.u32 %p3, %tid, 32; @!%p3 bra OUT;
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%at], {{%r1}};
setp.lt.u32 %p2, %tid, {used}; @%p2 ld.shared.u32 %r2, [%at]; @%p2 st.global.u32 [%mine], %r2;
OUT:"
        )
    };
    silent("stmatrix", &stored("4"));
    let found = report(&stored("8"));
    assert_eq!(
        kinds(&found),
        [Kind::UndefinedRegister],
        "{:#?}",
        found.findings
    );
    assert_eq!(found.findings[0].lanes, 0xf0);
}

#[test]
fn padding_of_structures() {
    // { u8, pad, u16, u32 } through a register of 64 bits, local and shared memory, and to global memory.
    let copy = ".local .align 8 .b8 l[8];
mov.u64 %rd5, l; st.local.u8 [%rd5], %tid; st.local.u16 [%rd5+2], %h1; st.local.u32 [%rd5+4], %tid;
ld.local.u64 %rd1, [%rd5]; setp.eq.u32 %p1, %tid, 5; @%p1 st.global.u64 [%out], %rd1;";
    silent("padding", &format!("mov.u16 %h1, 3; {copy}"));
    silent(
        "a pair with padding",
        "mov.b64 %rd1, {%tid, %r1}; setp.eq.u32 %p1, %tid, 5; @%p1 st.global.u64 [%out], %rd1;",
    );
    silent(
        "an argument with padding",
        "{ .param .b64 p; st.param.b32 [p], %tid; st.param.b32 [p+4], %r1; }",
    );
}

/// What goes through functions stays undefined, and no more.
#[test]
fn calls() {
    let options = Options::default();
    let run = |body: &str| {
        let functions = ".func (.reg .u32 r) same(.reg .u32 a) { mov.u32 r, a; ret; }
.func (.param .b32 r) other(.param .b32 a, .param .b32 b) { .reg .u32 x; ld.param.u32 x, [b]; st.param.u32 [r], x; ret; }\n";
        let text =
            with_out(body).replace(".visible .entry", &format!("{functions}.visible .entry"));
        launch_with(&text, [1; 3], [32, 1, 1], 32, &options).1
    };
    let memory = |a: &str, b: &str| {
        format!(
            "{{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], {a}; st.param.b32 [y], {b};
call (z), other, (x, y); ld.param.b32 %r2, [z]; }} st.global.u32 [%mine], %r2;"
        )
    };
    for (body, good) in [
        (
            "call (%r2), same, (%r1); st.global.u32 [%mine], %tid;".to_owned(),
            true,
        ),
        (
            "call (%r2), same, (%r1); st.global.u32 [%mine], %r2;".to_owned(),
            false,
        ),
        (
            "call (%r2), same, (%tid); call (%r3), same, (%r1); st.global.u32 [%mine], %r2;"
                .to_owned(),
            true,
        ),
        (memory("%r1", "%tid"), true),
        (memory("%tid", "%r1"), false),
    ] {
        let report = run(&body);
        let expected: &[Kind] = if good {
            &[]
        } else {
            &[Kind::UndefinedRegister]
        };
        assert_eq!(kinds(&report), expected, "{body}: {:#?}", report.findings);
        if !good {
            assert!(
                report.findings[0].message.contains("%r1"),
                "{}",
                report.findings[0]
            );
        }
    }
}

#[test]
fn global_memory_that_nothing_wrote() {
    let options = Options {
        undefined_global: true,
        ..Options::default()
    };
    let run = |body: &str| {
        use ptx_emulator::{Arg, GlobalMemory, Launch, Module, run};
        let module = Module::parse(&with_out(body)).expect("valid PTX");
        let mut memory = GlobalMemory::new();
        let out = memory.alloc(256, 256).expect("memory");
        memory.write(out, &[0; 128]).expect("a write");
        let launch = Launch {
            args: vec![Arg::Ptr(out)],
            ..Launch::default()
        };
        run(&module, "k", &launch, &mut memory, &options).expect("a launch")
    };
    let load = "ld.global.v2.u32 {%r1, %r2}, [%out+124];";
    let load = load.replace(
        "v2.u32 {%r1, %r2}, [%out+124]",
        "u32 %r1, [%out+124]; ld.global.u32 %r2, [%out+128]",
    );
    assert!(run(&load).is_clean());
    assert!(run(&format!("{load} st.global.u32 [%out], %r1;")).is_clean());
    let report = run(&format!("{load}\nst.global.u32 [%out], %r2;"));
    assert_eq!(kinds(&report), [Kind::UndefinedGlobal]);
    let message = &report.findings[0].message;
    assert!(
        message.contains("byte 128 of an allocation")
            && message.contains("stored to global memory"),
        "{message}"
    );
}

/// A value that is used once is reported once, and watching all does not go on for ever: the result and the counts of instructions stay.
#[test]
fn each_value_is_reported_once() {
    let body = "add.u32 %r2, %r1, 1;\nst.global.u32 [%mine], %r2;\nst.global.u32 [%mine], %r2;\nadd.u32 %r3, %r2, 1;\nst.global.u32 [%mine], %r3;";
    let report = report(body);
    assert_eq!(
        kinds(&report),
        [Kind::UndefinedRegister],
        "{:#?}",
        report.findings
    );
    assert_eq!(report.findings[0].count, 2);
    assert!(report.findings[0].also.is_empty());
}

/// An instruction of a random program: `D` is a destination, `A`, `B` and `C` are sources, `N` is a number.
const TEMPLATES: [&str; 44] = [
    "and.b32 D, A, B;",
    "and.b32 D, A, N;",
    "or.b32 D, A, B;",
    "or.b32 D, A, N;",
    "xor.b32 D, A, B;",
    "not.b32 D, A;",
    "cnot.b32 D, A;",
    "add.u32 D, A, B;",
    "sub.u32 D, A, B;",
    "neg.s32 D, A;",
    "abs.s32 D, A;",
    "mul.lo.u32 D, A, B;",
    "mul.lo.u32 D, A, N;",
    "mul.hi.u32 D, A, B;",
    "mad.lo.u32 D, A, B, C;",
    "min.u32 D, A, B;",
    "max.s32 D, A, N;",
    "shl.b32 D, A, N;",
    "shl.b32 D, A, B;",
    "shr.u32 D, A, N;",
    "shr.s32 D, A, N;",
    "bfe.u32 D, A, N, 5;",
    "bfe.s32 D, A, 3, N;",
    "bfi.b32 D, A, B, N, 7;",
    "prmt.b32 D, A, B, N;",
    "prmt.b32 D, A, B, C;",
    "shf.l.wrap.b32 D, A, B, N;",
    "shf.r.clamp.b32 D, A, B, N;",
    "lop3.b32 D, A, B, C, 0x1b;",
    "lop3.b32 D, A, B, C, 0xe8;",
    "popc.b32 D, A;",
    "brev.b32 D, A;",
    "clz.b32 D, A;",
    "setp.eq.u32 %p1, A, B; selp.b32 D, B, C, %p1;",
    "setp.lt.s32 %p1, A, B; selp.b32 D, A, C, !%p1;",
    "setp.ne.u32 %p1, A, N; setp.lt.u32 %p2, B, C; and.pred %p3, %p1, !%p2; selp.b32 D, 1, 2, %p3;",
    "slct.b32.s32 D, A, B, C;",
    "cvt.u16.u32 %h1, A; cvt.s32.s16 D, %h1;",
    "cvt.u8.u32 %h1, A; cvt.u32.u8 D, %h1;",
    "mov.b64 %rd1, {A, B}; add.u64 %rd1, %rd1, N; shr.u64 %rd1, %rd1, 20; cvt.u32.u64 D, %rd1;",
    "mov.b32 {%h1, %h2}, A; add.u16 %h1, %h1, %h2; mov.b32 D, {%h2, %h1};",
    "shfl.sync.bfly.b32 D, A, 5, 31, -1;",
    "setp.lt.u32 %p1, A, B; vote.sync.ballot.b32 D, %p1, -1;",
    "mul.wide.u16 D, %h3, %h4; add.cc.u32 D, A, B; addc.u32 D, D, C;",
];

/// Random programs against what they compute: whatever changes with the value of the undefined register is found, in its lanes.
#[test]
fn what_depends_on_it_is_found() {
    let mut random = Random(0x5eed);
    let (mut found, mut silent) = (0, 0);
    for _ in 0..400 {
        // Findings of one kind between two fences are one, so that there is one behind each store.
        let register = |random: &mut Random| format!("%r{}", 2 + random.below(5));
        let mut program = String::new();
        for _ in 0..=random.below(5) {
            let template = TEMPLATES[random.below(TEMPLATES.len() as u64) as usize];
            let number = if template.starts_with("bf") {
                random.below(40).to_string()
            } else {
                (random.nasty() as u32 >> (8 * random.below(4))).to_string()
            };
            let mut line = template.to_owned();
            for name in ["D", "A", "B", "C"] {
                line = line.replace(&format!(" {name}"), &format!(" {}", register(&mut random)));
                line = line.replace(
                    &format!("{{{name}"),
                    &format!("{{{}", register(&mut random)),
                );
            }
            program.push_str(&line.replace(" N", &format!(" {number}")));
            program.push('\n');
        }
        let place = register(&mut random);
        let body = |first: &str| {
            format!(
                "mov.u16 %h3, 3; mov.u16 %h4, 7; mov.b32 %r2, %tid; mov.u32 %r3, 0x00ff1234; mov.u32 %r4, 0; mul.lo.u32 %r6, %tid, 77;
{first} mov.b32 %r5, %r1;
{program}st.global.u8 [%mine], {place}; membar.cta; shr.u32 %r7, {place}, 8; st.global.u8 [%mine+1], %r7; membar.cta;
shr.u32 %r7, {place}, 16; st.global.u8 [%mine+2], %r7; membar.cta; shr.u32 %r7, {place}, 24; st.global.u8 [%mine+3], %r7;"
            )
        };
        let mut depends = 0u32;
        let values = [
            0,
            1,
            u32::MAX,
            0x8000_0000,
            0x1234_5678,
            random.bits() as u32,
        ];
        let results: Vec<Vec<u32>> = values
            .iter()
            .map(|v| {
                let (data, report) = block(&body(&format!("mov.u32 %r1, {v};")), 32, 32);
                assert!(report.is_clean(), "{program}{:#?}", report.findings);
                data
            })
            .collect();
        for l in 0..32 {
            let differs = results.iter().any(|r| r[l] != results[0][l]);
            depends |= u32::from(differs) << l;
        }
        let report = block(&body(""), 32, 32).1;
        let lanes = report.findings.iter().fold(0, |m, f| m | f.lanes);
        assert_eq!(
            depends & !lanes,
            0,
            "{program}stored: {place}, {depends:#x}\n{:#?}",
            report.findings
        );
        if report.is_clean() {
            silent += 1;
        } else {
            found += 1;
        }
    }
    assert!(found > 50 && silent > 50, "{found} found, {silent} silent");
}
