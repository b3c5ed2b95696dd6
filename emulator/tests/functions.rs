//! Functions, the system's services, module data and the forms of operands that compilers use: PTX written by hand where the corpus
//! of compiled kernels has none, and what goes wrong.

mod common;

use common::{kernel, kinds, launch_with, with_out};
use ptx_emulator::{FindingKind as Kind, Module, Options, Report, RunError};

/// Runs `body` behind the module-level text `before`, one block; the body finds the buffer in `%out`, its thread in `%tid`.
fn behind(before: &str, body: &str, threads: u32, words: usize) -> (Vec<u32>, Report) {
    let options = Options {
        step_limit: 1 << 24,
        ..Options::default()
    };
    launch_with(
        &module(before, body),
        [1; 3],
        [threads, 1, 1],
        words,
        &options,
    )
}

fn module(before: &str, body: &str) -> String {
    with_out(body).replace(".visible .entry", &format!("{before}\n.visible .entry"))
}

fn clean(before: &str, body: &str, threads: u32) -> Vec<u32> {
    let (data, report) = behind(before, body, threads, threads as usize);
    assert!(report.is_clean(), "{body}\n{:#?}", report.findings);
    data
}

#[test]
fn parameters_in_registers() {
    let before = ".func (.reg .u32 sum, .reg .u32 product) both(.reg .u32 a, .reg .u32 b)
{ add.u32 sum, a, b; mul.lo.u32 product, a, b; ret; }";
    let body = "call (%r1, %r2), both, (%tid, 7); call.uni (%r3, %r4), both, (%r1, %r2);
    st.global.u32 [%mine], %r4;";
    let expected: Vec<u32> = (0..32u32).map(|t| (t + 7) * (7 * t)).collect();
    assert_eq!(clean(before, body, 32), expected);
}

#[test]
fn guarded_calls_leave_the_other_lanes_alone() {
    let before = ".func (.reg .u32 r) next(.reg .u32 a) { add.u32 r, a, 1; ret; }";
    let body = "and.b32 %r2, %tid, 1; setp.eq.u32 %p1, %r2, 0; mov.u32 %r1, 50;
    @%p1 call (%r1), next, (%tid);
    activemask.b32 %r3; setp.ne.u32 %p2, %r3, -1; @%p2 trap;
    st.global.u32 [%mine], %r1;";
    let expected: Vec<u32> = (0..32)
        .map(|t| if t % 2 == 0 { t + 1 } else { 50 })
        .collect();
    assert_eq!(clean(before, body, 32), expected);
}

#[test]
fn a_jump_table_of_functions() {
    // 32-bit addresses of functions in a table; lanes call different ones and meet behind the call.
    let before = ".func (.reg .u32 r) one(.reg .u32 a) { add.u32 r, a, 100; ret; }
.func (.reg .u32 r) two(.reg .u32 a) { setp_and_return: mul.lo.u32 r, a, 2; ret; }
.func (.reg .u32 r) three(.reg .u32 a) { .reg .pred q; setp.gt.u32 q, a, 16; mov.u32 r, 3; @q ret; mov.u32 r, 33; ret; }
.global .u32 table[3] = { one, two, three };";
    let body = "rem.u32 %r1, %tid, 3; mad.wide.u32 %rd1, %r1, 4, 0; mov.u64 %rd2, table; add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    call (%r3), %r2, (%tid), table;
    activemask.b32 %r4; setp.ne.u32 %p2, %r4, -1; @%p2 trap;
    st.global.u32 [%mine], %r3;";
    let expected: Vec<u32> = (0..32)
        .map(|t| match t % 3 {
            0 => t + 100,
            1 => 2 * t,
            _ if t > 16 => 3,
            _ => 33,
        })
        .collect();
    assert_eq!(clean(before, body, 32), expected);
}

#[test]
fn calls_through_bad_pointers_are_reported() {
    let before = ".func (.reg .u32 r) one(.reg .u32 a) { add.u32 r, a, 100; ret; }
.global .u64 kept = one;";
    let (_, report) = behind(
        before,
        "mov.u64 %rd1, 12; P: .callprototype (.reg .u32 _) _ (.reg .u32 _); call (%r1), %rd1, (%tid), P;",
        32,
        1,
    );
    assert_eq!(kinds(&report), [Kind::BadOperand]);
    assert!(
        report.findings[0].message.contains("no function"),
        "{}",
        report.findings[0]
    );
    let (_, report) = behind(
        before,
        "mov.u64 %rd1, one; P: .callprototype _ (.reg .u32 _); call %rd1, (%tid), P;",
        32,
        1,
    );
    assert_eq!(kinds(&report), [Kind::BadOperand]);
    assert!(
        report.findings[0].message.contains("other parameters"),
        "{}",
        report.findings[0]
    );
}

#[test]
fn endless_recursion_overflows_the_stack() {
    let before = ".func (.reg .u32 r) down(.reg .u32 a)
{ .reg .u32 b; add.u32 b, a, 1; call (r), down, (b); add.u32 r, r, 1; ret; }";
    let (_, report) = behind(
        before,
        "call (%r1), down, (%tid); st.global.u32 [%mine], %r1;",
        32,
        32,
    );
    assert_eq!(
        kinds(&report),
        [Kind::StackOverflow],
        "{:#?}",
        report.findings
    );
}

#[test]
fn registers_of_a_function_are_undefined_at_each_call() {
    // The second call must not see what the first left in `%x`.
    let before = ".func (.reg .u32 r) maybe(.reg .u32 a)
{ .reg .u32 x; .reg .pred q; setp.eq.u32 q, a, 0; @q mov.u32 x, 5; add.u32 r, x, 1; ret; }";
    let good = "call (%r1), maybe, (0); st.global.u32 [%mine], %r1;";
    assert_eq!(clean(before, good, 32), [6; 32]);
    let bad = "call (%r1), maybe, (0); call (%r1), maybe, (1); st.global.u32 [%mine], %r1;";
    let (_, report) = behind(before, bad, 32, 32);
    assert_eq!(
        kinds(&report),
        [Kind::UndefinedRegister],
        "{:#?}",
        report.findings
    );
    assert_eq!(report.findings[0].lanes, u32::MAX);
}

#[test]
fn undefined_bits_may_be_moved_but_not_used() {
    let moved = ".reg .u32 %never; mov.u32 %r1, %never; mov.b64 %rd1, {%r1, %tid}; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r2, %rd2;
    st.global.u32 [%mine], %r2;";
    assert_eq!(clean("", moved, 32), (0..32).collect::<Vec<u32>>());
    let used =
        ".reg .u32 %never; mov.u32 %r1, %never; add.u32 %r2, %r1, 1; st.global.u32 [%mine], %r2;";
    let (_, report) = behind("", used, 32, 32);
    assert_eq!(
        kinds(&report),
        [Kind::UndefinedRegister],
        "{:#?}",
        report.findings
    );
    assert!(
        report.findings[0].message.contains("%never"),
        "{}",
        report.findings[0]
    );
    // Through a loop: undefined the first time round only.
    let turned = ".reg .u32 %never; mov.u32 %r3, 0;
L:  mov.u32 %r1, %never; setp.ne.u32 %p1, %r3, 0; @%p1 add.u32 %r2, %r1, 1; mov.u32 %never, 4;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 2; @%p2 bra L; st.global.u32 [%mine], %r2;";
    assert_eq!(clean("", turned, 32), [5; 32]);
}

#[test]
fn services_report_what_goes_wrong() {
    let before = ".extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .b8 what[6] = {120, 32, 62, 32, 49, 0}; .global .b8 file[5] = {97, 46, 99, 117, 0}; .global .b8 name[2] = {102};";
    let twice = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %rd1, [r]; }
    { .param .b64 p; st.param.b64 [p], %rd1; call free, (p); call free, (p); }";
    let (_, report) = behind(before, twice, 1, 1);
    assert_eq!(kinds(&report), [Kind::BadOperand], "{:#?}", report.findings);
    let nowhere = "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], 64; st.param.b64 [a], 0; call (r), vprintf, (f, a); }";
    let (_, report) = behind(before, nowhere, 1, 1);
    assert_eq!(
        kinds(&report),
        [Kind::OutOfBounds],
        "{:#?}",
        report.findings
    );
    let fails = "setp.ne.u32 %p1, %tid, 5; @%p1 bra FINE;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
      st.param.b64 [a], what; st.param.b64 [b], file; st.param.b32 [c], 12; st.param.b64 [d], name; st.param.b64 [e], 1;
      call __assertfail, (a, b, c, d, e); }
FINE: ret;";
    let (_, report) = behind(before, fails, 32, 1);
    assert_eq!(kinds(&report), [Kind::Assertion], "{:#?}", report.findings);
    let finding = &report.findings[0];
    assert_eq!(
        finding.message,
        "a.cu:12: f: thread 5: assertion `x > 1` failed"
    );
    assert_eq!(finding.lanes, 1 << 5);
}

/// Strings that begin and end inside words of memory, that another one's bytes follow, and that nothing ends; a format that has changed since it was printed.
#[test]
fn strings_of_printf() {
    let before = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 4 .b8 text[12] = {97, 98, 99, 100, 101, 102, 103, 104, 0, 105, 106, 107};
.global .align 4 .b8 format[4] = {37, 115, 46, 0};
.global .align 4 .b8 open[6] = {120, 120, 120, 120, 120, 120};";
    let print = |format: &str, offset: u32| {
        format!(
            "{{ .local .align 8 .b8 list[8]; .reg .b64 %at, %l; .param .b64 f; .param .b64 a; .param .b32 r;
            mov.u64 %at, text; add.u64 %at, %at, {offset}; st.local.u64 [list], %at; mov.u64 %l, list; cvta.local.u64 %l, %l;
            mov.u64 %at, {format}; st.param.b64 [f], %at; st.param.b64 [a], %l; call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; st.global.u32 [%out], %r1; }}"
        )
    };
    let all: Vec<String> = [0, 1, 4, 6, 7, 8]
        .map(|offset| print("format", offset))
        .to_vec();
    let changed = ".reg .b16 %h; mov.u16 %h, 33; st.global.u8 [format+2], %h;";
    let body = format!("{} {changed} {}", all.join("\n"), print("format", 5));
    let (data, report) = behind(before, &body, 1, 1);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(report.printed, "abcdefgh.bcdefgh.efgh.gh.h..fgh!");
    assert_eq!(data, [4]);
    // Memory without an end behind it: nothing is printed.
    let (data, report) = behind(before, &print("open", 0), 1, 1);
    assert_eq!(kinds(&report), [Kind::OutOfBounds]);
    assert_eq!((report.printed.as_str(), data), ("", vec![u32::MAX]));
}

#[test]
fn data_of_the_module() {
    let before = ".const .f32 half[4] = {0.5, 0.25};
.global .s32 grid[3][2] = {{1, 2}, {3}};
.global .u64 to = generic(grid)+8;
.global .u8 bytes[8] = {0xff(grid), 0xff00(grid), 0xff0000(grid), 0xff000000(grid), 0xff00000000(grid), 0xff0000000000(grid), 0xff000000000000(grid), 0xff00000000000000(grid)};
.global .u32 sums[] = {(1 << 4) + 3, 7 % 4 * 2, 5 > 3 ? 10 : 20, ~0 & 0xff};
.extern .global .u32 later; .visible .global .u32 later = 77;";
    let body = ".global .u32 inner = 9;
    ld.global.u64 %rd1, [to]; ld.s32 %r1, [%rd1]; ld.global.u64 %rd2, [bytes]; ld.global.s32 %r2, [%rd2+4];
    ld.global.s32 %r3, [grid+12]; ld.const.f32 %f1, [half+4]; mov.b32 %r4, %f1; ld.const.f32 %f2, [half+8]; mov.b32 %r5, %f2;
    ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [sums]; ld.global.u32 %r10, [inner]; ld.global.u32 %r11, [later];
    st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4}; st.global.v4.u32 [%out+16], {%r5, %r6, %r7, %r8};
    st.global.v2.u32 [%out+32], {%r9, %r10}; st.global.u32 [%out+40], %r11;";
    let (data, report) = behind(before, body, 1, 11);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let quarter = 0.25f32.to_bits();
    assert_eq!(data, [3, 2, 0, quarter, 0, 19, 6, 10, 255, 9, 77]);
}

#[test]
fn wide_values() {
    let body = ".reg .b128 %q, %s; .reg .v2 .b64 %v;
    cvt.u64.u32 %rd1, %tid; mov.b128 %q, {%rd1, 7}; mov.b128 %s, %q; mov.b128 {%rd2, %rd3}, %s;
    add.u64 %rd4, %rd2, %rd3; mov.u64 %v.x, %rd4; mov.u64 %v.y, 5;
    mul.wide.u32 %rd5, %tid, 16; add.u64 %rd5, %rd5, %out; st.global.b128 [%rd5], %q; st.global.v2.b64 [%rd5], %v;
    ld.global.b128 %s, [%rd5]; mov.b128 {%rd6, %rd7}, %s; st.global.u64 [%rd5], %rd7; st.global.u64 [%rd5+8], %rd6;";
    let (data, report) = behind("", body, 32, 128);
    assert!(report.is_clean(), "{:#?}", report.findings);
    for (t, row) in data.chunks_exact(4).enumerate() {
        assert_eq!(row, [5, 0, t as u32 + 7, 0]);
    }
    let long = "mul.wide.u32 %rd5, %tid, 32; add.u64 %rd5, %rd5, %out;
    st.global.v8.b32 [%rd5], {%tid, 1, 2, 3, 4, 5, 6, 7}; ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd5];
    add.u64 %rd1, %rd1, %rd4; st.global.u64 [%rd5], %rd1;";
    let (data, report) = behind("", long, 4, 32);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(data[8..16], [7, 8, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn what_is_missing_fails_when_it_is_reached() {
    let lacking = "setp.eq.u32 %p1, %tid, 40; @%p1 tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd1, {%f4, %f5, %f6, %f7}]; st.global.u32 [%mine], 1;";
    let text = with_out(lacking);
    let parsed = Module::parse(&text).expect("PTX");
    assert_eq!(parsed.missing().len(), 1);
    assert!(Module::parse_strict(&text).is_err());
    // 32 threads do not reach it, 64 do.
    assert_eq!(clean("", lacking, 32), [1; 32]);
    let mut memory = ptx_emulator::GlobalMemory::new();
    let out = memory.alloc(256, 256).expect("memory");
    let launch = ptx_emulator::Launch {
        block: [64, 1, 1],
        args: vec![ptx_emulator::Arg::Ptr(out)],
        ..ptx_emulator::Launch::default()
    };
    let error = ptx_emulator::run(&parsed, "k", &launch, &mut memory, &Options::default());
    match error {
        Err(RunError::Unsupported(e)) => {
            assert!(e.to_string().contains("cube maps"), "{e}");
        }
        other => panic!("{other:?}"),
    }
    // What is missing is named; what is not PTX is an error at once, even in a function that nobody calls.
    let textures = module(
        ".global .texref pictures;",
        "tex.cube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [pictures, {%f5,%f6,%f7,%f8}];",
    );
    let error = Module::parse_strict(&textures)
        .expect_err("textures")
        .to_string();
    assert!(
        error.contains("`tex.cube.v4.f32.f32`: cube maps"),
        "{error}"
    );
    let wrong = kernel("", "").replace(
        ".visible .entry",
        ".func f() { frobnicate.u32; ret; }\n.visible .entry",
    );
    assert!(Module::parse(&wrong).is_err());
}

#[test]
fn calls_are_checked_when_they_are_read() {
    let before = ".func (.param .b32 r) f(.param .b64 p) { ret; }\n.extern .func g(.param .b32 a);";
    let cases = [
        ("{ .param .b64 p; call f, (p); }", "1 returned"),
        (
            "{ .param .b32 r; call (r), f; }",
            "takes 1 operands, found 0",
        ),
        (
            "{ .param .b32 r, p; call (r), f, (p); }",
            "expected 8 bytes, found 4",
        ),
        ("call h, (%r1);", "`h` is not declared"),
        ("call g, (%r1);", "declared and not defined"),
        ("call (5), f, (%rd1);", "a register or a .param variable"),
    ];
    for (body, expected) in cases {
        let error = Module::parse_strict(&module(before, body))
            .expect_err(body)
            .to_string();
        assert!(error.contains(expected), "`{body}` gives `{error}`");
    }
}

#[test]
fn constant_expressions_are_checked() {
    let cases = [
        ("mov.u32 %r1, 5 / 0;", "division by zero"),
        ("mov.u32 %r1, (1 + 2;", "expected `)`"),
        (
            "mov.u32 %r1, 1 + 0f3f800000;",
            "integers and floats do not mix",
        ),
        ("mov.f32 %f1, ~1.5;", "expected an integer after `~`"),
    ];
    for (body, expected) in cases {
        let error = Module::parse_strict(&with_out(body))
            .expect_err(body)
            .to_string();
        assert!(error.contains(expected), "`{body}` gives `{error}`");
    }
    let nested = format!("mov.u32 %r1, {}1{};", "(".repeat(5000), ")".repeat(5000));
    assert!(Module::parse(&with_out(&nested)).is_err());
}

#[test]
fn stacks_grow_and_shrink() {
    // Each lane takes a frame of its own size, in a function that calls itself; what it stores there it finds again.
    let before = ".func (.reg .u32 sum) deep(.reg .u32 n)
{ .reg .u32 left, sub, rest; .reg .u64 size, at, old; .reg .pred %q;
  stacksave.u64 old; add.u32 left, n, 5; mul.wide.u32 size, left, 4; alloca.u64 at, size, 32;
  st.local.u32 [at], n; st.local.u32 [at+16], left;
  setp.eq.u32 %q, n, 0; mov.u32 sub, 0; @%q bra DONE; sub.u32 rest, n, 1; call (sub), deep, (rest);
DONE: ld.local.u32 rest, [at+16]; add.u32 sum, sub, rest; ld.local.u32 rest, [at]; add.u32 sum, sum, rest;
  stackrestore.u64 old; ret; }";
    let body = "and.b32 %r1, %tid, 7; stacksave.u64 %rd1; alloca.u64 %rd2, 64; st.local.u32 [%rd2+60], %tid;
    call (%r2), deep, (%r1); ld.local.u32 %r3, [%rd2+60]; sub.u32 %r3, %r3, %tid; stackrestore.u64 %rd1;
    stacksave.u64 %rd3; sub.u64 %rd3, %rd3, %rd1; cvt.u32.u64 %r4, %rd3; add.u32 %r3, %r3, %r4; add.u32 %r2, %r2, %r3;
    st.global.u32 [%mine], %r2;";
    let expected: Vec<u32> = (0..32u32)
        .map(|t| (0..=t % 8).map(|n| 2 * n + 5).sum())
        .collect();
    assert_eq!(clean(before, body, 32), expected);
    let found = |body: &str| kinds(&behind("", body, 32, 32).1);
    let gone = "stacksave.u64 %rd1; alloca.u64 %rd2, 16; stackrestore.u64 %rd1; st.local.u32 [%rd2], %tid;";
    assert_eq!(found(gone), [Kind::OutOfBounds]);
    let large = "mov.u64 %rd3, 0xffffffffffffffff; alloca.u64 %rd2, %rd3;";
    assert_eq!(found(large), [Kind::StackOverflow]);
    let wrong = "mov.u64 %rd1, 0x123456; stackrestore.u64 %rd1;";
    assert_eq!(found(wrong), [Kind::BadOperand]);
    for bad in [
        "stacksave.u32 %rd1;",
        "stacksave.u64 5;",
        "stackrestore.u64 5;",
        "alloca.u64 %rd1, 16, 3;",
        "alloca.u64 %rd1, 16, 16777216;",
        "alloca.u64 %rd1, %r1;",
        "alloca.b64 %rd1, 16;",
        "alloca %rd1, 16;",
    ] {
        assert!(Module::parse_strict(&module("", bad)).is_err(), "{bad}");
    }
}

/// The emulator is one device: a team of one.
#[test]
fn multimem_is_that_of_one_device() {
    let body = "st.global.u32 [%mine], %tid; bar.sync 0;
    multimem.red.relaxed.gpu.global.add.u32 [%out], 1; bar.sync 0;
    multimem.ld_reduce.acquire.gpu.global.max.u32 %r1, [%mine]; multimem.st.relaxed.gpu.global.u32 [%mine], %r1;";
    let mut expected: Vec<u32> = (0..32).collect();
    expected[0] = 32;
    assert_eq!(clean("", body, 32), expected);
    for bad in [
        "multimem.red.relaxed.gpu.global.inc.u32 [%out], %r1;",
        "multimem.red.relaxed.gpu.shared.add.u32 [%out], %r1;",
        "multimem.red.relaxed.gpu.global.max.f16x2 [%out], %r1;",
        "multimem.st.relaxed.gpu.global.add.u32 [%out], %r1;",
        "multimem.st.global.bf16 [%out], %h1;",
        "multimem.ld_reduce.relaxed.gpu.global.u32 %r1, [%out];",
        "multimem.ld_reduce.relaxed.gpu.global.add.v2.u32 {%r1, %r2}, [%out];",
        "multimem.ld_reduce.relaxed.gpu.global.add.acc::f32.f32 %f1, [%out];",
        "multimem.relaxed.gpu.global.add.u32 %r1, [%out];",
    ] {
        assert!(Module::parse_strict(&module("", bad)).is_err(), "{bad}");
    }
}

/// An operand that a tensor copy has filled outside its array makes the result 0.
#[test]
fn fma_with_the_nan_of_what_is_outside() {
    let body = "mov.u32 %r1, 0x7fff4000; mov.u32 %r2, 0x42004200; mov.u32 %r3, 0xbc00bc00;
    fma.rn.oob.f16x2 %r4, %r1, %r2, %r3; fma.rn.oob.f16x2 %r5, %r2, %r3, %r1; fma.rn.oob.relu.f16x2 %r6, %r2, %r3, %r3;
    fma.rn.f16x2 %r7, %r1, %r2, %r3;
    shl.b32 %r8, %tid, 4; cvt.u64.u32 %rd1, %r8; add.u64 %rd1, %rd1, %out; st.global.v4.b32 [%rd1], {%r4, %r5, %r6, %r7};";
    let (data, report) = behind("", body, 1, 4);
    assert!(report.is_clean(), "{:#?}", report.findings);
    // 2 * 3 - 1 = 5 below; 3 * -1 + 2 = -1; 3 * -1 - 1 below 0.
    assert_eq!(data, [0x0000_4500, 0x0000_bc00, 0, 0x7fff_4500]);
}

/// Every thread makes progress (independent thread scheduling), also if the loop in which it waits for another is spread over functions.
#[test]
fn lanes_wait_for_each_other_through_calls() {
    let cas = ".func (.reg .b32 r) cas(.reg .b64 a) { atom.global.cas.b32 r, [a], 0, 1; ret; }";
    let critical = "ld.volatile.global.u32 %r2, [%out+260]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%out+260], %r2;
    membar.gl; atom.global.exch.b32 %r3, [%out+256], 0;";
    let inside = ".func take(.reg .b64 a) { .reg .b32 r; .reg .pred p; L: atom.global.cas.b32 r, [a], 0, 1; setp.ne.u32 p, r, 0; @p bra L; ret; }
.func give(.reg .b64 a) { .reg .b32 r; membar.gl; atom.global.exch.b32 r, [a], 0; ret; }
.func add(.reg .b64 a) { .reg .b32 r; ld.volatile.global.u32 r, [a]; add.u32 r, r, 1; st.volatile.global.u32 [a], r; ret; }";
    let nested = &format!(
        "{cas}\n.func (.reg .b32 r) try(.reg .b64 a) {{ .reg .b32 s; call (s), cas, (a); mov.u32 r, s; ret; }}
.func take(.reg .b64 a) {{ .reg .b32 r; .reg .pred p; L: call (r), try, (a); setp.ne.u32 p, r, 0; @p bra L; ret; }}"
    );
    // The stack as compilers have it without optimisation.
    let stack = ".func take(.param .b64 a) { .local .align 8 .b8 depot[16]; .reg .b64 x; .reg .b32 r; .reg .pred p; ld.param.u64 x, [a]; st.local.u64 [depot], x;
L: ld.local.u64 x, [depot]; atom.global.cas.b32 r, [x], 0, 1; st.local.u32 [depot+8], r; ld.local.u32 r, [depot+8]; setp.ne.u32 p, r, 0; @p bra L; ret; }";
    let returns_early = ".func (.reg .b32 r) try(.reg .b64 a) { .reg .pred p; atom.global.cas.b32 r, [a], 0, 1; setp.eq.u32 p, r, 0; @p ret; mov.u32 r, 1; ret; }";
    let lock = "add.u64 %rd1, %out, 256;";
    let cases = [
        (cas, format!("L: call.uni (%r1), cas, (%rd1); setp.ne.u32 %p1, %r1, 0; @%p1 bra L; {critical}")),
        (cas, format!("mov.u32 %r1, 1; L: setp.eq.u32 %p1, %r1, 0; @%p1 bra IN; call (%r1), cas, (%rd1); bra L; IN: {critical}")),
        (inside, format!("call take, (%rd1); {critical}")),
        (inside, "call take, (%rd1); add.u64 %rd2, %out, 260; call add, (%rd2); call give, (%rd1);".to_owned()),
        (nested, format!("call take, (%rd1); {critical}")),
        (stack, format!("{{ .param .b64 a0; st.param.b64 [a0], %rd1; call take, (a0); }} {critical}")),
        (returns_early, format!("L: call (%r1), try, (%rd1); setp.ne.u32 %p1, %r1, 0; @%p1 bra L; {critical}")),
        // Attempts are counted, so that each turn of the loop has an effect.
        (cas, format!("mad.wide.u32 %rd3, %lane, 4, %out; L: call.uni (%r1), cas, (%rd1); ld.global.u32 %r9, [%rd3]; add.u32 %r9, %r9, 1; st.global.u32 [%rd3], %r9; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; {critical}")),
        // A mixed lot: some lanes by a function, some without.
        (cas, format!("and.b32 %r4, %tid, 1; setp.eq.u32 %p2, %r4, 0;
L: @%p2 call (%r1), cas, (%rd1); @!%p2 atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L; {critical}")),
    ];
    for (before, body) in &cases {
        for threads in [2, 32, 96] {
            let (data, report) = behind(before, &format!("{lock} {body}"), threads, 66);
            assert!(
                report.is_clean(),
                "{threads} threads: {before}\n{body}\n{:#?}",
                report.findings
            );
            assert_eq!((data[64], data[65]), (0, threads), "{before}\n{body}");
        }
    }
    // A lock that is never given back ends the run.
    let forget = format!("{lock} L: call (%r1), cas, (%rd1); setp.ne.u32 %p1, %r1, 0; @%p1 bra L;");
    for before in [cas, returns_early] {
        let body = forget.replace("cas,", if before == cas { "cas," } else { "try," });
        let (_, report) = behind(before, &body, 32, 66);
        assert_eq!(
            kinds(&report),
            [Kind::EndlessLoop],
            "{:#?}",
            report.findings
        );
    }
    let (_, report) = behind(
        stack,
        &format!("{lock} {{ .param .b64 a0; st.param.b64 [a0], %rd1; call take, (a0); }}"),
        32,
        66,
    );
    assert_eq!(
        kinds(&report),
        [Kind::EndlessLoop],
        "{:#?}",
        report.findings
    );
}

/// A lane that waits in one function for another lane's store in another function.
#[test]
fn a_flag_between_functions() {
    let before = ".func wait(.reg .b64 a, .reg .b32 v) { .reg .b32 r; .reg .pred p; L: ld.volatile.global.u32 r, [a]; setp.ne.u32 p, r, v; @p bra L; ret; }
.func tell(.reg .b64 a, .reg .b32 v) { st.volatile.global.u32 [a], v; ret; }";
    // Each lane waits for the lane before it, and then tells the next; either first in the text.
    let body =
        "add.u64 %rd1, %out, 256; add.u32 %r1, %lane, 1; setp.eq.u32 %p1, %warp, 0; @!%p1 bra E;
    call wait, (%rd1, %lane); call tell, (%rd1, %r1);
E:  st.global.u32 [%mine], 1;";
    let (data, report) = behind(before, body, 32, 65);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(data[64], 32);
    let body = "add.u64 %rd1, %out, 256; setp.lt.u32 %p1, %lane, 16; @%p1 bra A; call wait, (%rd1, 7); bra E; A: call tell, (%rd1, 7); E: st.global.u32 [%mine], 1;";
    for body in [body.to_owned(), body.replace("@%p1 bra A", "@!%p1 bra A")] {
        let (_, report) = behind(before, &body, 32, 65);
        assert!(report.is_clean(), "{:#?}", report.findings);
    }
}

/// Instructions that lanes execute together, in a function that different lanes call in different places: as on a GPU, those with one mask meet at one instruction.
#[test]
fn lanes_of_different_calls_execute_together() {
    let exchanges = [
        ("shfl.sync.bfly.b32 r, a, 31, 31, -1;", "31 - l"),
        ("shfl.sync.idx.b32 a, a, 20, 31, -1; mov.u32 r, a;", "20"),
        ("redux.sync.add.u32 r, a, -1;", "496"),
        (
            "setp.lt.u32 q, a, 20; vote.sync.ballot.b32 r, q, 0xffffffff;",
            "1048575",
        ),
        (
            "and.b32 r, a, 7; match.any.sync.b32 r, r, -1; popc.b32 r, r;",
            "4",
        ),
        ("elect.sync r|q, -1;", "0"),
        // Half a warp, of which each half was called in another place.
        (
            "and.b32 r, a, 1; shl.b32 m, 0x55555555, r; shfl.sync.down.b32 r, a, 2, 31, m;",
            "l + 2 below 32",
        ),
        (
            "shfl.sync.up.b32 r, a, 16, 0, -1; bar.warp.sync -1; shfl.sync.bfly.b32 r, r, 16, 31, -1;",
            "up, then across",
        ),
        (
            "movmatrix.sync.aligned.m8n8.trans.b16 r, a; movmatrix.sync.aligned.m8n8.trans.b16 r, r;",
            "l",
        ),
        ("bar.sync 0; shfl.sync.bfly.b32 r, a, 31, 31, -1;", "31 - l"),
    ];
    let function = "{ .reg .pred q; .reg .b32 m; EXCHANGE ret; }";
    // How lanes come to the function: %p1 in lanes below 16.
    let calls = [
        "@%p1 bra A; call (%r1), f, (%lane); bra E; A: call (%r1), f, (%lane); E:",
        "@!%p1 bra A; call (%r1), f, (%lane); bra E; A: call (%r1), f, (%lane); E:",
        // Through another function on one side, and through a pointer.
        "@%p1 bra A; call (%r1), g, (%lane); bra E; A: call (%r1), f, (%lane); E:",
        "@%p1 bra A; mov.u64 %rd1, f; call (%r1), %rd1, (%lane), proto; bra E; A: call (%r1), f, (%lane); E:",
        // One by one, as behind a lock.
        "mov.u32 %r2, 0; L: setp.eq.u32 %p2, %r2, %lane; @%p2 bra A; add.u32 %r2, %r2, 1; bra L; A: call (%r1), f, (%lane);",
        "rem.u32 %r2, %lane, 3; setp.eq.u32 %p2, %r2, 0; setp.eq.u32 %p3, %r2, 1; @%p2 bra A; @%p3 bra B; call (%r1), f, (%lane); bra E;
A: call (%r1), g, (%lane); bra E; B: call (%r1), g, (%lane); E:",
    ];
    for (exchange, expected) in exchanges {
        let f = function.replace("EXCHANGE", exchange);
        let before = format!(
            ".func (.reg .b32 r) f(.reg .b32 a) {f}\n.func (.reg .b32 r) g(.reg .b32 a) {{ .reg .b32 s; call (s), f, (a); mov.u32 r, s; ret; }}"
        );
        for call in calls {
            let proto = "proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);";
            let body = format!(
                "{} setp.lt.u32 %p1, %lane, 16; {call} st.global.u32 [%mine], %r1;",
                if call.contains("proto") { proto } else { "" }
            );
            // A second warp comes too, so that barriers have something to wait for.
            let data = clean(&before, &body, 64);
            let expected: Vec<u32> = (0..32)
                .map(|l| match expected {
                    "31 - l" => 31 - l,
                    "l + 2 below 32" if l < 30 => l + 2,
                    "l" | "l + 2 below 32" => l,
                    "up, then across" if l < 16 => l,
                    "up, then across" => l - 16,
                    number => number.parse().expect("a number"),
                })
                .collect();
            assert_eq!(data[..32], expected, "{exchange}\n{call}");
            assert_eq!(data[32..], expected, "{exchange}\n{call}");
        }
    }
}

/// The same with other depths of a recursion: the lanes' registers are those of their own calls.
#[test]
fn lanes_of_different_depths_execute_together() {
    // Lane l calls itself l mod 4 times, exchanges values, and returns.
    let before = ".func (.reg .b32 r) f(.reg .b32 a, .reg .b32 left) { .reg .pred q; .reg .b32 s, keep;
    add.u32 keep, a, left; setp.eq.u32 q, left, 0; @q bra D; sub.u32 s, left, 1; call (s), f, (a, s); add.u32 r, s, keep; ret;
D:  shfl.sync.bfly.b32 r, a, 1, 31, -1; ret; }";
    let other_way = before
        .replace("@q bra D;", "@!q bra C; bra D; C:")
        .replace("ret;\nD:", "bra.uni X;\nD:")
        .replace("-1; ret;", "-1; X: ret;");
    let body = "and.b32 %r2, %lane, 3; call (%r1), f, (%lane, %r2); st.global.u32 [%mine], %r1;";
    let expected: Vec<u32> = (0..32u32)
        .map(|l| (l ^ 1) + (1..=l % 4).map(|left| l + left).sum::<u32>())
        .collect();
    for before in [before, &other_way] {
        assert_eq!(clean(before, body, 32), expected);
    }
}

/// Lanes that do not meet are found as before: other instructions, other functions, a lane that does not come.
#[test]
fn lanes_of_different_calls_that_do_not_meet() {
    let before = ".func (.reg .b32 r) f(.reg .b32 a) { shfl.sync.bfly.b32 r, a, 31, 31, -1; ret; }
.func (.reg .b32 r) g(.reg .b32 a) { shfl.sync.bfly.b32 r, a, 31, 31, -1; ret; }
.func (.reg .b32 r) h(.reg .b32 a) { .reg .pred q; setp.eq.u32 q, a, 3; mov.u32 r, 0; @q ret; shfl.sync.bfly.b32 r, a, 31, 31, -1; ret; }
.func (.reg .b32 r) m(.reg .b32 a) { .reg .b32 s; .reg .pred q; setp.lt.u32 q, a, 16; selp.b32 s, -1, 0xffff0000, q; shfl.sync.bfly.b32 r, a, 1, 31, s; ret; }";
    for (one, other) in [("f", "g"), ("h", "h"), ("m", "m"), ("f", "h")] {
        let body = format!(
            "setp.lt.u32 %p1, %lane, 16; @%p1 bra A; call (%r1), {one}, (%lane); bra E; A: call (%r1), {other}, (%lane); E: bar.sync 0;"
        );
        let (_, report) = behind(before, &body, 32, 32);
        let found = kinds(&report);
        assert!(
            !found.is_empty() && found.iter().all(|k| *k == Kind::MemberMask),
            "{one} {other}: {:#?}",
            report.findings
        );
    }
}

/// What lanes get from others is defined although they come first, while undefined bits are followed.
#[test]
fn what_others_bring_later_is_defined() {
    for exchange in [
        "shfl.sync.bfly.b32 a, a, 31, 31, -1;",
        "shfl.sync.idx.b32 a, a, 31, 31, -1;",
        "redux.sync.add.u32 a, a, -1;",
        "match.any.sync.b32 a, a, -1;",
        "movmatrix.sync.aligned.m8n8.trans.b16 a, a;",
    ] {
        let before =
            format!(".func (.reg .b32 r) f(.reg .b32 a) {{ {exchange} mov.u32 r, a; ret; }}");
        for branch in ["@%p1 bra A;", "@!%p1 bra A;"] {
            // %r9 is undefined, and only moved: what is left of it in the function's registers is of another call.
            let body = format!(
                "call (%r8), f, (%r9); setp.lt.u32 %p1, %lane, 16; {branch} call (%r1), f, (%lane); bra E;
A:  call (%r1), f, (%lane); E: st.global.u32 [%mine], %r1;"
            );
            clean(&before, &body, 32);
        }
    }
    let before = ".func (.reg .b32 r) f(.reg .b32 a) { shfl.sync.bfly.b32 a, a, 31, 31, -1; mov.u32 r, a; ret; }";
    let body = "setp.lt.u32 %p1, %lane, 16; @%p1 bra A; call (%r1), f, (%lane); bra E; A: call (%r1), f, (%r9); E: st.global.u32 [%mine], %r1;";
    let (_, report) = behind(before, body, 32, 32);
    assert_eq!(kinds(&report), [Kind::UndefinedRegister]);
}
