//! Errors of the text: each bad input with its line, column and message; and that no mutation of valid text ever panics.

mod common;

use common::{Random, with_out};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, RunError, run};

/// Each body stands from line 16, column 5 on, after the usual declarations.
#[test]
fn bad_bodies() {
    let table: &[(&str, &str)] = &[
        (
            "frobnicate.u32 %r1, %r2;",
            "16:5: unknown instruction `frobnicate.u32`",
        ),
        (
            "mbarrier.init.shared.b32 [%r1], 1;",
            "16:5: not valid: `mbarrier.init.shared.b32`: the type is .b64",
        ),
        (
            "mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];",
            "16:41: operand `%rd1`: expected `_`: an mbarrier of .shared::cluster gives no state",
        ),
        (
            "wgmma.fence.sync;",
            "16:5: not valid: `wgmma.fence.sync`: .sync.aligned is needed",
        ),
        (
            "setmaxnreg.inc.sync.aligned.u32 100;",
            "16:37: out of range: the number of registers is 24 to 256, a multiple of 8",
        ),
        (
            "tcgen05.fence::before_thread_sync;",
            "16:5: not supported: `tcgen05.fence::before_thread_sync`",
        ),
        (
            "tex.cube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2,%f3,%f3}];",
            "16:5: not supported: `tex.cube.v4.f32.f32`: cube maps and multisample textures",
        ),
        (
            "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1}];",
            "16:42: operand `[%rd1+0]`: expected 2 coordinates in braces",
        ),
        (
            "suld.b.1d.b32 %r1, [%rd1, {%r2}];",
            "16:5: not valid: `suld.b.1d.b32`: one of .trap, .clamp, .zero is needed",
        ),
        (
            "cp.async.bulk.shared::cluster.global [%r1], [%rd1], 16;",
            "not valid: `cp.async.bulk.shared::cluster.global`: .mbarrier::complete_tx::bytes is needed with this destination",
        ),
        ("add.u32 %r1, %r2;", "16:5: `add` takes 3 operands, found 2"),
        (
            "add.u32 %r1, %r2, %rd1;",
            "16:23: operand `%rd1`: expected 32 bits (.u32), found .b64",
        ),
        ("add.u32 %r1, %r2, %r99;", "16:23: `%r99` is not declared"),
        ("add.u32 %r1, %r2, %r01;", "16:23: `%r01` is not declared"),
        (
            "add.u32 5, %r2, %r3;",
            "16:13: operand `5`: expected a destination register",
        ),
        (
            "add.u32.foo %r1, %r2, %r3;",
            "16:12: modifier `.foo` is not known on `add.u32.foo`",
        ),
        (
            "add %r1, %r2, %r3;",
            "16:5: expected a type on `add`, found none",
        ),
        (
            "add.u32 %r1, %r2 %r3;",
            "16:22: expected `,` or `;`, found `%r3`",
        ),
        (
            "add.f32 %f1, %f2, 1;",
            "16:23: operand `1`: expected a float literal",
        ),
        ("and.u32 %r1, %r2, %r3;", "logic needs an untyped"),
        (
            "setp.foo.u32 %p1, %r1, %r2;",
            "a comparison operator is needed",
        ),
        (
            "setp.ltu.u32 %p1, %r1, %r2;",
            "this comparison needs a float type",
        ),
        (
            "@%r1 add.u32 %r1, %r2, %r3;",
            "16:6: operand `%r1`: expected 1 bits (.pred), found .b32",
        ),
        (
            "bra NOWHERE;",
            "16:9: label `NOWHERE` is not defined in this kernel",
        ),
        ("L: mov.u32 %r1, 0; L: ret;", "16:24: `L` is declared twice"),
        (".reg .b32 %q, %q;", "16:19: `%q` is declared twice"),
        (".reg .b32 %r<3>;", "16:15: `%r` is declared twice"),
        (
            ".reg .b128 %q; add.u64 %q, %rd1, %rd2;",
            "up to 64 bits, found .b128",
        ),
        (
            ".reg .v2 .f32 %v; mov.f32 %f1, %v.z;",
            "a vector register with an element 2",
        ),
        (
            "ld.global.u32 %r1, %rd1;",
            "operand `%rd1`: expected an address in brackets",
        ),
        (
            "ld.global.v4.u32 {%r1, %r2}, [%rd1];",
            "as many registers in braces",
        ),
        (
            "ld.global.v8.u64 {%rd1, %rd2, %rd3, %rd4, %rd1, %rd2, %rd3, %rd4}, [%out];",
            "more than 32 bytes",
        ),
        (
            "ld.global.u64 %r1, [%rd1];",
            "16:19: operand `%r1`: expected 64 bits (.u64), found .b32",
        ),
        ("mov.u32 %r1, 0x1G;", "16:18: `0x1G` is not a valid literal"),
        (
            "mov.u32 %r1, 99999999999999999999;",
            "is not a valid literal",
        ),
        (
            "mov.f32 %f1, 0f3f8;",
            "16:18: `0f3f8` is not a valid literal",
        ),
        ("mov.u32 %r1, %tid.w;", "16:18: "),
        ("mov.u32 %r1, #5;", "expected an operand, found `#`"),
        (
            "mov.u32 %r1, \u{20ac};",
            "16:18: character '\u{20ac}' does not belong in PTX",
        ),
        (
            "call.uni (%r1), vprintf, (%rd1, %rd2);",
            "16:21: `vprintf` is not declared",
        ),
        ("bar.sync 16;", "16:14: out of range: barrier 16"),
        (
            "lop3.b32 %r1, %r2, %r3, %r4, 256;",
            "a truth table from 0 to 0xff",
        ),
        ("cvt.s32.f32 %r1, %f1;", "float to integer needs"),
        (
            "cvt.f16.f32 %h1, %f1;",
            "a narrowing conversion needs a rounding",
        ),
        (
            "mma.sync.aligned.m16n8k7.row.col.f32.f16.f16.f32 %r1, %r1, %r1, %r1;",
            "this shape",
        ),
        (
            "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 %r1, %r1, %r1, %r1;",
            "only m8n8k4 of f16 has other orders",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r1}, {%f1};",
            "expected 4 registers in braces",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1}, [%r2];",
            "only .m8n8 of .b16",
        ),
        ("shfl.up.b32 %r1, %r2, 1, 0;", "the form without .sync"),
        (
            ".shared .align 3 .b8 s[4];",
            "16:13: out of range: alignment 3",
        ),
        (".shared .b8 s[];", "missing the size of the array"),
        (".shared .b8 s[99999999999];", "out of range"),
        (".frob 5;", "16:5: unknown directive `.frob`"),
        ("/* never closed", "16:5: the comment is never closed"),
        ("mov.u32 %r1, %r2", "expected `,` or `;`, found `ret`"),
    ];
    let mut wrong = Vec::new();
    for (body, expected) in table {
        let message = Module::parse_strict(&with_out(body))
            .map_or_else(|e| e.to_string(), |_| "no error".to_owned());
        if !message.contains(expected) {
            wrong.push(format!("`{body}` gives `{message}`, not `{expected}`"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn bad_modules() {
    let table: &[(&str, &str)] = &[
        ("", "1:1: missing the .version directive"),
        (".version 8.0", "1:1: missing the .target directive"),
        (
            ".version x",
            "1:10: expected a version such as 8.0, found `x`",
        ),
        (
            ".version 8.0\n.target sm_80\n.address_size 16",
            "3:15: out of range: .address_size 16: it is 32 or 64",
        ),
        (
            ".version 8.0\n.target sm_80\nhello",
            "3:1: expected a directive, found `hello`",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k() {",
            "3:12: the body is never closed",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k(.param .u32) { ret; }",
            "3:21: expected a variable name, found `)`",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k(.param .u32 a, .param .u32 a) { ret; }",
            "`a` is declared twice",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k() { ret; } .entry k() { ret; }",
            "3:28: `k` is declared twice",
        ),
        (
            ".version 8.0\n.target sm_80\n.entry k() .frob 3 { ret; }",
            "unknown directive `.frob`",
        ),
        (
            ".version 8.0\n.target sm_80\n.global .u32 x[2] = {1, 2, 3};",
            "more initialisers than elements",
        ),
        (
            ".version 8.0\n.target sm_80\n.pragma nounroll;",
            "expected a string",
        ),
    ];
    for (text, expected) in table {
        let message = Module::parse(text).expect_err(text).to_string();
        assert!(
            message.contains(expected),
            "`{text}` gives `{message}`, not `{expected}`"
        );
    }
}

#[test]
fn what_compilers_write_around_a_kernel() {
    let text = "//\n// Generated by a compiler\n//\n.version 8.4\n.target sm_90a, debug\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 4 .u32 table[4] = {1, 2, 0x30, 4};\n.const .f32 half = 0f3f000000;\n.extern .shared .align 128 .b8 dyn[];
.func (.reg .u32 r) helper(.reg .u32 x) { add.u32 r, x, 1; ret; }
.file 1 \"a.cu\", 12345, 678
.visible .entry k(\n  .param .align 8 .b8 s[16],\n  .param .u64 .ptr .global .align 16 out\n)\n.maxntid 128, 1, 1\n.minnctapersm 2\n{
 .reg .b32 r<5>; .reg .b64 %rd<4>; .pragma \"nounroll\";\n .loc 1 12 7\n ld.param.u64 %rd1, [out]; .loc 1 13 1, function_name $L__info, inlined_at 1 2 3
 ld.param.v2.u32 {r1, r2}, [s+8];\n ld.global.u32 r3, [table+8]; ld.const.u32 r4, [half]; mov.u64 %rd2, table; ld.global.u32 r0, [%rd2+4];
 st.global.v2.u32 [%rd1], {r1, r2}; st.global.v2.b32 [%rd1+8], {r3, r4}; st.global.b32 [%rd1+16], r0; mov.u32 r1, dyn; and.b32 r1, r1, 127; st.global.b32 [%rd1+20], r1;
}\n.section .debug_str { .b8 1,2,3 }\n";
    let module = Module::parse(text).expect("valid PTX");
    assert_eq!((module.version(), module.target()), ("8.4", "sm_90a"));
    let kernel = module.kernel("k").expect("the kernel");
    assert_eq!(kernel.max_threads(), Some([128, 1, 1]));
    let offsets: Vec<_> = kernel
        .params()
        .iter()
        .map(|p| (p.name.as_str(), p.offset, p.size, p.align, p.is_pointer))
        .collect();
    assert_eq!(offsets, [("s", 0, 16, 8, false), ("out", 16, 8, 8, true)]);
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(24, 16).expect("memory");
    let s = [[0u8; 8], 0x0000_0007_0000_0009u64.to_le_bytes()].concat();
    let launch = Launch {
        block: [1, 1, 1],
        args: vec![Arg::Bytes(s), Arg::Ptr(out)],
        dynamic_shared: 256,
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert!(report.is_clean(), "{}", report.findings[0]);
    let data = memory.read(out, 24).expect("a read");
    let words: Vec<u32> = data
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    assert_eq!(words, [9, 7, 0x30, 0x3f00_0000, 2, 0]);
}

#[test]
fn impossible_launches() {
    let module = Module::parse(include_str!("fixtures/sgemm_tiled.ptx")).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let args = vec![
        Arg::Ptr(0),
        Arg::Ptr(0),
        Arg::Ptr(0),
        Arg::U32(0),
        Arg::U32(0),
        Arg::U32(0),
    ];
    let good = Launch {
        grid: [0, 1, 1],
        block: [64, 1, 1],
        args: args.clone(),
        ..Launch::default()
    };
    let mut go =
        |launch: &Launch, name: &str| run(&module, name, launch, &mut memory, &Options::default());
    assert_eq!(go(&good, "sgemm_tiled").expect("an empty grid").blocks, 0);
    assert!(matches!(
        go(&good, "nothing"),
        Err(RunError::UnknownKernel { .. })
    ));
    let bad = |change: fn(&mut Launch)| {
        let mut launch = good.clone();
        change(&mut launch);
        launch
    };
    assert!(matches!(
        go(&bad(|l| l.block = [32, 1, 1]), "sgemm_tiled"),
        Err(RunError::Geometry(_))
    ));
    assert!(matches!(
        go(&bad(|l| l.block = [64, 64, 1]), "sgemm_tiled"),
        Err(RunError::Geometry(_))
    ));
    assert!(matches!(
        go(&bad(|l| l.grid = [1, 70_000, 1]), "sgemm_tiled"),
        Err(RunError::Geometry(_))
    ));
    assert!(go(&bad(|l| l.cluster = [3, 1, 1]), "sgemm_tiled").is_ok());
    assert!(matches!(
        go(&bad(|l| l.cluster = [1, 2, 1]), "sgemm_tiled"),
        Err(RunError::Geometry(_))
    ));
    assert!(matches!(
        go(&bad(|l| l.dynamic_shared = 230_000), "sgemm_tiled"),
        Err(RunError::SharedMemory { .. })
    ));
    assert!(matches!(
        go(&bad(|l| _ = l.args.pop()), "sgemm_tiled"),
        Err(RunError::ArgumentCount {
            expected: 6,
            found: 5
        })
    ));
    assert!(matches!(
        go(&bad(|l| l.args[3] = Arg::U64(1)), "sgemm_tiled"),
        Err(RunError::ArgumentSize { index: 3, .. })
    ));
    assert!(matches!(
        go(&bad(|l| l.args[3] = Arg::F32(1.0)), "sgemm_tiled"),
        Err(RunError::ArgumentType { index: 3, .. })
    ));
}

/// Truncations and random edits of valid text parse or fail, and what parses runs; nothing panics.
#[test]
fn mutated_text_never_panics() {
    let seeds = [
        include_str!("fixtures/sgemm_naive.ptx").to_owned(),
        with_out(
            ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %tid, 16, %r1; T: .branchtargets A, B; and.b32 %r3, %tid, 1;
    cp.async.ca.shared.global.L2::128B [%r2], [%out], 16, 8; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4,%r5,%r6,%r7}, [%r2]; brx.idx %r3, T;
A:  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r4,%r5,%r6,%r7}, {%r4,%r5}, {%f1,%f2,%f3,%f4};
B:  cvt.rn.f16x2.f32 %r8, %f1, 0f3f800000; shfl.sync.bfly.b32 %r9|%p1, %r8, 1, 31, -1; vote.sync.ballot.b32 %r10, !%p1, 0xffffffff;
    atom.global.add.u32 %r11, [%out+4], %r9; prmt.b32 %r12, %r11, %r9, 0x5410; setp.lt.and.f32 %p2|%p3, %f1, %f2, !%p1;
    @!%p2 st.global.v2.f32 [%mine+8], {%f1, %f2}; { .reg .b64 %z; mov.b64 %z, {%r1, %r2}; mov.b64 {%r1, _}, %z; } lop3.b32 %r1, %r2, %r3, %r4, 0x96;",
        ),
    ];
    let tokens = [
        ";",
        ",",
        "{",
        "}",
        "[",
        "]",
        ".",
        "%",
        "@",
        "!",
        "-",
        "+",
        "0x",
        "0f",
        "ret",
        "bra",
        ".u64",
        ".f32",
        ".v4",
        "%r1",
        "%rd1",
        "%p1",
        ":",
        "|",
        "(",
        ")",
        "\"",
        "/*",
        "9999999999",
        "-1",
        "_",
        ".reg",
        ".shared",
        ".param",
        "exit",
        "bar.sync 0;",
        "L1:",
        "<",
        ">",
        "=",
        "\u{e9}",
    ];
    let mut random = Random(61);
    let (mut parsed, mut refused) = (0, 0);
    for seed in &seeds {
        for cut in (0..seed.len())
            .step_by(7)
            .filter(|c| seed.is_char_boundary(*c))
        {
            refused += u32::from(Module::parse(&seed[..cut]).is_err());
        }
        for _ in 0..1000 {
            let mut text = seed.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(text.len() as u64) as usize;
                let end = (at + random.below(6) as usize).min(text.len());
                if !text.is_char_boundary(at) || !text.is_char_boundary(end) {
                    continue;
                }
                match random.below(4) {
                    0 => text.replace_range(at..end, ""),
                    1 => text.insert_str(at, tokens[random.below(tokens.len() as u64) as usize]),
                    2 => text
                        .replace_range(at..end, tokens[random.below(tokens.len() as u64) as usize]),
                    _ => {
                        let copy = text[at..end].to_owned();
                        let to = random.below(text.len() as u64) as usize;
                        if text.is_char_boundary(to) {
                            text.insert_str(to, &copy);
                        }
                    }
                }
            }
            match Module::parse(&text) {
                Err(e) => {
                    refused += 1;
                    assert!(
                        e.line >= 1 && e.column >= 1 && e.line as usize <= text.lines().count() + 1,
                        "{e}"
                    );
                }
                Ok(module) => {
                    parsed += 1;
                    let names: Vec<String> = module.kernels().map(str::to_owned).collect();
                    for name in names {
                        let Some(kernel) = module.kernel(&name) else {
                            continue;
                        };
                        let mut memory = GlobalMemory::new();
                        let data = memory.alloc(1024, 256).expect("memory");
                        let args = kernel.params().iter().map(|p| {
                            if p.size == 8 {
                                Arg::Ptr(data)
                            } else {
                                Arg::Bytes(vec![3; p.size as usize])
                            }
                        });
                        let launch = Launch {
                            args: args.collect(),
                            block: [64, 1, 1],
                            ..Launch::default()
                        };
                        let options = Options {
                            step_limit: 2000,
                            workers: 1,
                            ..Options::default()
                        };
                        // Any report and any refusal will do.
                        let _ = run(&module, &name, &launch, &mut memory, &options)
                            .map(|r| r.findings.len());
                    }
                }
            }
        }
    }
    assert!(
        parsed > 100 && refused > 700,
        "{parsed} parsed, {refused} refused"
    );
}
