//! Forms of operands that assemblers take and generators write: array elements, registers plus a constant, negated predicates, and vector registers as
//! parameters. What each means was measured on an H200.

mod common;

use common::{block, launch_with, with_out};
use ptx_emulator::{Module, Options};

/// The assembler takes `%tid` for the special register only.
fn for_the_assembler(text: &str) -> String {
    text.replace("%tid", "%own").replace("%own.x", "%tid.x")
}

/// What the body leaves in `%r1`, by thread.
fn value(body: &str) -> Vec<u32> {
    let body = format!("{body}\nst.global.u32 [%mine], %r1;");
    common::assembles("operands", &for_the_assembler(&with_out(&body)));
    let (data, report) = block(&body, 32, 32);
    assert!(report.is_clean(), "{body}\n{:#?}", report.findings);
    data
}

const ARRAYS: &str = ".shared .align 16 .b32 s[8]; .local .align 8 .b64 l[4]; .shared .align 16 .v4 .f32 q[2]; .shared .b16 h[4];\n";

#[test]
fn array_elements_are_addresses_in_elements() {
    for (body, expected) in [
        (
            "mov.u64 %rd1, s[2]; mov.u64 %rd2, s; sub.u64 %rd1, %rd1, %rd2; cvt.u32.u64 %r1, %rd1;",
            8,
        ),
        (
            "mov.u32 %r1, s[3]; mov.u32 %r2, s[1]; sub.u32 %r1, %r1, %r2;",
            8,
        ),
        (
            "mov.u32 %r1, h[3]; mov.u32 %r2, h; sub.u32 %r1, %r1, %r2;",
            6,
        ),
        (
            "mov.u32 %r1, q[1]; mov.u32 %r2, q[0]; sub.u32 %r1, %r1, %r2;",
            16,
        ),
        (
            "mov.u32 %r1, l[3]; mov.u32 %r2, l; sub.u32 %r1, %r1, %r2;",
            24,
        ),
        (
            "mov.u32 %r1, s; mov.u32 %r2, s[-1]; sub.u32 %r1, %r1, %r2;",
            4,
        ),
        (
            "mov.u32 %r3, 5; mov.u32 %r1, s[%r3]; mov.u32 %r2, s; sub.u32 %r1, %r1, %r2;",
            20,
        ),
        (
            "mov.u32 %r3, 5; mov.u64 %rd1, s[%r3+1]; mov.u64 %rd2, s; sub.u64 %rd1, %rd1, %rd2; cvt.u32.u64 %r1, %rd1;",
            24,
        ),
        (
            "cvta.shared.u64 %rd1, s[2]; cvta.shared.u64 %rd2, s; sub.u64 %rd1, %rd1, %rd2; cvt.u32.u64 %r1, %rd1;",
            8,
        ),
        (
            "mov.u64 %rd1, s+2*4; mov.u64 %rd2, s; sub.u64 %rd1, %rd1, %rd2; cvt.u32.u64 %r1, %rd1;",
            8,
        ),
        (
            "setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.u32 s[1], 77; bar.warp.sync -1; ld.shared.u32 %r1, s[1];",
            77,
        ),
        (
            "setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.u32 [s+20], 78; bar.warp.sync -1; mov.u32 %r2, 4; ld.shared.u32 %r1, s[%r2+1];",
            78,
        ),
        (
            "mov.u32 %r2, 2; st.local.b64 l[%r2], 9; ld.local.b64 %rd1, l[1+1]; cvt.u32.u64 %r1, %rd1;",
            9,
        ),
        (
            "st.local.v2.b32 l[1], {%tid, 6}; ld.local.u32 %r1, [l+12];",
            6,
        ),
        (
            "ld.param.u64 %rd1, [out]; sub.u64 %rd1, %rd1, %out; cvt.u32.u64 %r1, %rd1;",
            0,
        ),
    ] {
        assert_eq!(value(&format!("{ARRAYS}{body}")), [expected; 32], "{body}");
    }
    // Elements by lane.
    let by_lane = format!(
        "{ARRAYS}setp.lt.u32 %p1, %tid, 8; @%p1 st.shared.u32 s[%tid], %tid; bar.warp.sync -1; and.b32 %r2, %tid, 3; ld.shared.u32 %r1, s[%r2+4];"
    );
    let expected: Vec<u32> = (0..32).map(|t| t % 4 + 4).collect();
    assert_eq!(value(&by_lane), expected);
}

#[test]
fn a_register_plus_a_constant_is_their_sum() {
    for (body, expected) in [
        ("mov.u32 %r1, %r9+1;", 41),
        ("mov.u32 %r1, %r9 + 1;", 41),
        ("mov.u32 %r1, %r9+-3;", 37),
        ("mov.u64 %rd1, %rd9+8; cvt.u32.u64 %r1, %rd1;", 1008),
        ("and.b32 %r1, %r9+1, -1;", 41),
        ("shl.b32 %r1, %r9, %r8+1;", 10240),
        ("add.s32 %r1, %r9+1, %r8+2;", 50),
        ("selp.b32 %r1, %r9+1, %r8+2, 1;", 41),
        ("mad.lo.u32 %r1, %r9+1, %r8+1, %r8;", 335),
        ("mul.wide.u32 %rd1, %r9+1, %r8; cvt.u32.u64 %r1, %rd1;", 287),
        ("setp.eq.u32 %p1, %r9+1, 41; selp.u32 %r1, 1, 2, %p1;", 1),
        ("mov.u16 %h2, %h1+1; cvt.u32.u16 %r1, %h2;", 10),
        ("cvt.u64.u32 %rd1, %r9+1; cvt.u32.u64 %r1, %rd1;", 41),
        (
            "st.global.u32 [%mine], %r9+2; ld.global.u32 %r1, [%mine];",
            42,
        ),
        ("shfl.sync.idx.b32 %r1, %r9+1, 0, 31, -1;", 41),
        (
            "bra OVER; mov.u32 %r1, 0; OVER: mov.u32 %r1, %r9+1; bra END; mov.u32 %r1, 1; END:",
            41,
        ),
        (
            "setp.ne.u32 %p1, %tid, 99; mov.u32 %r1, 0; @%p1 add.u32 %r1, %r9+1, %r9+1;",
            82,
        ),
    ] {
        let body =
            format!("mov.u32 %r9, 40; mov.u32 %r8, 7; mov.u64 %rd9, 1000; mov.u16 %h1, 9;\n{body}");
        assert_eq!(value(&body), [expected; 32], "{body}");
    }
}

/// What a predicate says of two others.
type Meaning = fn(bool, bool) -> bool;

#[test]
fn negated_predicates() {
    let even = "and.b32 %r2, %tid, 1; setp.eq.u32 %p1, %r2, 0; setp.lt.u32 %p2, %tid, 16;\n";
    let cases: [(&str, Meaning); 12] = [
        ("selp.u32 %r1, 1, 0, !%p1;", |p, _| !p),
        ("mov.pred %p3, !%p1; selp.u32 %r1, 1, 0, %p3;", |p, _| !p),
        ("not.pred %p3, !%p1; selp.u32 %r1, 1, 0, %p3;", |p, _| p),
        (
            "and.pred %p3, %p1, !%p2; selp.u32 %r1, 1, 0, %p3;",
            |p, q| p && !q,
        ),
        (
            "and.pred %p3, !%p1, %p2; selp.u32 %r1, 1, 0, %p3;",
            |p, q| !p && q,
        ),
        (
            "or.pred %p3, !%p1, !%p2; selp.u32 %r1, 1, 0, %p3;",
            |p, q| !p || !q,
        ),
        (
            "xor.pred %p3, %p1, !%p2; selp.u32 %r1, 1, 0, %p3;",
            |p, q| p == q,
        ),
        ("and.pred %p3, 1, !%p2; selp.u32 %r1, 1, 0, %p3;", |_, q| !q),
        ("or.pred %p3, %p1, !0; selp.u32 %r1, 1, 0, %p3;", |_, _| {
            true
        }),
        (
            "setp.eq.and.u32 %p3, 0, 0, !%p2; selp.u32 %r1, 1, 0, %p3;",
            |_, q| !q,
        ),
        (
            "set.eq.and.u32.u32 %r1, 0, 0, !%p1; and.b32 %r1, %r1, 1;",
            |p, _| !p,
        ),
        (
            "@!%p1 mov.pred %p1, !%p2; selp.u32 %r1, 1, 0, %p1;",
            |p, q| p || !q,
        ),
    ];
    for (body, expected) in cases {
        let expected: Vec<u32> = (0..32u32)
            .map(|t| u32::from(expected(t % 2 == 0, t < 16)))
            .collect();
        assert_eq!(value(&format!("{even}{body}")), expected, "{body}");
    }
    let votes = [
        ("vote.sync.ballot.b32 %r1, !%p1, -1;", 0xaaaa_aaaa),
        (
            "vote.sync.any.pred %p3, !%p1, -1; selp.u32 %r1, 1, 0, %p3;",
            1,
        ),
        (
            "vote.sync.all.pred %p3, !%p1, -1; selp.u32 %r1, 1, 0, %p3;",
            0,
        ),
        ("bar.red.popc.u32 %r1, 0, !%p1;", 16),
        (
            "lop3.or.b32 %r1|%p3, 0, 0, 0, 0, !%p1; vote.sync.ballot.b32 %r1, %p3, -1;",
            0xaaaa_aaaa,
        ),
    ];
    for (body, expected) in votes {
        assert_eq!(value(&format!("{even}{body}")), [expected; 32], "{body}");
    }
}

#[test]
fn vector_registers() {
    let functions = "
.func (.reg .v2 .u32 r) bump(.reg .v2 .u32 x) { add.u32 r.x, x.x, 1; add.u32 r.y, x.y, 2; ret; }
.func (.reg .v4 .f32 r, .reg .u32 n) scale(.reg .u32 k, .reg .v4 .f32 x) { .reg .f32 f; cvt.rn.f32.u32 f, k;
  mul.f32 r.x, x.x, f; mul.f32 r.y, x.y, f; mul.f32 r.z, x.z, f; mul.f32 r.w, x.w, f; add.u32 n, k, 1; ret; }
.func (.reg .v2 .b64 r) swap(.reg .v2 .b64 x) { mov.b64 r.x, x.y; mov.b64 r.y, x.x; ret; }\n";
    let body = ".reg .v2 .u32 %v, %w; .reg .v4 .f32 %q; .reg .v2 .b64 %d;
mov.u32 %v.x, 2; mov.u32 %v.y, 3; call.uni (%w), bump, (%v); st.global.v2.u32 [%out], %w;
mov.v2.u32 %v, %w; st.global.v2.u32 [%out+8], %v;
mov.f32 %q.x, 0f3f800000; mov.f32 %q.y, %q.x; mov.f32 %q.z, %q.x; mov.f32 %q.w, 0f40000000;
call (%q, %r1), scale, (3, %q); st.global.v4.f32 [%out+16], %q; st.global.u32 [%out+32], %r1;
mov.b64 %d.x, 5; mov.b64 %d.y, 6; call (%d), swap, (%d); st.global.v2.b64 [%out+48], %d;";
    let text = with_out(body).replace(".visible .entry", &format!("{functions}.visible .entry"));
    common::assembles("vectors", &for_the_assembler(&text));
    let (data, report) = launch_with(&text, [1; 3], [1, 1, 1], 16, &Options::default());
    assert!(report.is_clean(), "{:#?}", report.findings);
    let (three, six) = (3f32.to_bits(), 6f32.to_bits());
    assert_eq!(
        data,
        [3, 5, 3, 5, three, three, three, six, 4, 0, 0, 0, 6, 0, 5, 0]
    );
}

#[test]
fn what_is_no_operand_is_refused() {
    for (body, says) in [
        ("add.u32 %r1, s[1], %r2;", "register"),
        ("mov.u32 %r1, t[1];", "array"),
        ("mov.u32 %r1, none[1];", "not declared"),
        ("mov.u32 %r1, s[%f1];", "32 or 64 bits"),
        ("mov.u32 %r1+1, %r2;", "destination"),
        ("add.f32 %f1, %f2+1, %f2;", "integers"),
        ("mov.u32 %r1, two[1];", "several dimensions"),
        ("mov.b64 %rd1, {%r1+1, %r2};", "offset"),
    ] {
        let text = with_out(&format!(
            ".shared .b32 s[4]; .shared .b32 t; .shared .b32 two[2][2];\n{body}"
        ));
        let error = Module::parse(&text)
            .and_then(|m| m.missing().first().map_or(Ok(()), |e| Err(e.clone())))
            .expect_err(body);
        assert!(error.to_string().contains(says), "{body}: {error}");
    }
    let bad = with_out("").replace(".address_size 64", ".address_size 16");
    let error = Module::parse(&bad).expect_err("16").to_string();
    assert!(error.contains("32 or 64"), "{error}");
}
