//! A whole matrix product as kernels for Hopper have it: a producer warp with tensor copies, a ring of stages between mbarriers, a consumer warpgroup with `wgmma`,
//! an epilogue by `stmatrix` and a tensor store, and a cluster of two blocks that share B by multicast. It must compute the product and be found clean; each
//! change of it that is a bug must be found.

// Registers of a fragment are counted by the formulas.
#![allow(clippy::needless_range_loop)]

mod common;

use std::fmt::Write;

use common::{Random, assembles, kernel};
use ptx_emulator::{
    Arg, GlobalMemory, Launch, Module, Options, Report, TensorElement, TensorMap, TensorSwizzle,
    run,
};

const M: u64 = 256;
const N: u64 = 128;
const K: u64 = 320;
const STAGES: u32 = 3;

/// The kernel: blocks of 64 × 64, clusters of 2 along M, threads 0 to 127 produce and 128 to 255 consume.
fn text() -> String {
    let steps = K / 64;
    let d: Vec<String> = (0..32).map(|i| format!("%d{i}")).collect();
    let d = d.join(", ");
    let mut zero = String::new();
    for i in 0..32 {
        let _ = writeln!(zero, "    mov.f32 %d{i}, 0f00000000;");
    }
    let mut products = String::new();
    for k in 0..4 {
        let _ = writeln!(
            products,
            "    add.u64 %x0, %da, {k2};\n    add.u64 %x1, %db, {k2};\n    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{d}}}, %x0, %x1, 1, 1, 1, 0, 0;",
            k2 = 2 * k
        );
    }
    // Registers 8j to 8j + 7 are the fragments of four 8×8 matrices: rows 0 and 8 of columns 16j, then of 16j + 8.
    let mut epilogue = String::new();
    for j in 0..4 {
        for h in 0..4 {
            let _ = writeln!(
                epilogue,
                "    cvt.rn.f16x2.f32 %r{h}, %d{}, %d{};",
                8 * j + 2 * h + 1,
                8 * j + 2 * h
            );
        }
        let _ = writeln!(
            epilogue,
            "    shr.u32 %y0, %lane, 4;
    add.u32 %y0, %y0, {c};
    and.b32 %y1, %row, 7;
    xor.b32 %y0, %y0, %y1;
    shl.b32 %y0, %y0, 4;
    mad.lo.u32 %y0, %row, 128, %y0;
    add.u32 %y0, %y0, %c;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%y0], {{%r0, %r1, %r2, %r3}};",
            c = 2 * j
        );
    }
    kernel(
        ".param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .align 64 .b8 c[128]",
        &format!(
            ".reg .b32 %r<8>, %t, %lane, %rank, %i, %stage, %phase, %full, %empty, %m0, %n0, %k0, %y<8>, %row, %c, %base;
    .reg .f32 %d<32>;
    .reg .b64 %ma, %mb, %mc, %da, %db, %x<4>;
    .reg .b16 %mask;
    .reg .pred %p<4>, %first, %done;
    .shared .align 1024 .b8 data[{bytes}];
    .shared .align 1024 .b8 out[8192];
    .shared .align 8 .b64 full[{STAGES}];
    .shared .align 8 .b64 empty[{STAGES}];
    mov.b64 %ma, a; cvta.param.u64 %ma, %ma;
    mov.b64 %mb, b; cvta.param.u64 %mb, %mb;
    mov.b64 %mc, c; cvta.param.u64 %mc, %mc;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %m0, %ctaid.x; shl.b32 %m0, %m0, 6;
    mov.u32 %n0, %ctaid.y; shl.b32 %n0, %n0, 6;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %base, data;
    mov.u32 %i, 0;
    @!%first bra MADE;
MAKE:
    shl.b32 %y0, %i, 3;
    mov.u32 %full, full; add.u32 %full, %full, %y0;
    mov.u32 %empty, empty; add.u32 %empty, %empty, %y0;
    mbarrier.init.shared.b64 [%full], 1;
    mbarrier.init.shared.b64 [%empty], 2;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, {STAGES};
    @%p0 bra MAKE;
    fence.mbarrier_init.release.cluster;
MADE:
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    mov.u32 %i, 0;
    mov.u32 %stage, 0;
    mov.u32 %phase, 0;
    setp.ge.u32 %p1, %t, 128;
    @%p1 bra CONSUME;
    setmaxnreg.dec.sync.aligned.u32 40;
    @!%first bra END;
PRODUCE:
    shl.b32 %y0, %stage, 3;
    mov.u32 %full, full; add.u32 %full, %full, %y0;
    mov.u32 %empty, empty; add.u32 %empty, %empty, %y0;
    xor.b32 %y1, %phase, 1;
FREE:
    mbarrier.try_wait.parity.shared.b64 %done, [%empty], %y1;
    @!%done bra FREE;
    mbarrier.arrive.expect_tx.shared.b64 _, [%full], 16384;
    shl.b32 %k0, %i, 6;
    mad.lo.u32 %y2, %stage, 16384, %base;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%y2], [%ma, {{%k0, %m0}}], [%full];
    shl.b32 %y3, %rank, 5;
    add.u32 %y4, %n0, %y3;
    mad.lo.u32 %y5, %rank, 4096, %y2;
    add.u32 %y5, %y5, 8192;
    mov.u16 %mask, 3;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%y5], [%mb, {{%k0, %y4}}], [%full], %mask;
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p0, %stage, {STAGES};
    @%p0 xor.b32 %phase, %phase, 1;
    @%p0 mov.u32 %stage, 0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, {steps};
    @%p0 bra PRODUCE;
    bra END;
CONSUME:
    setmaxnreg.inc.sync.aligned.u32 232;
{zero}
LOOP:
    shl.b32 %y0, %stage, 3;
    mov.u32 %full, full; add.u32 %full, %full, %y0;
    mov.u32 %empty, empty; add.u32 %empty, %empty, %y0;
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [%full], %phase;
    @!%done bra FILLED;
    mad.lo.u32 %y2, %stage, 16384, %base;
    cvt.u64.u32 %x2, %y2;
    and.b64 %x2, %x2, 0x3ffff;
    shr.u64 %x2, %x2, 4;
    or.b64 %da, %x2, 0x4000004000010000;
    add.u64 %db, %da, 512;
    wgmma.fence.sync.aligned;
{products}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    setp.lt.u32 %p2, %t, 130;
    sub.u32 %y3, %t, 128;
    mapa.shared::cluster.u32 %y4, %empty, %y3;
    @%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%y4];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p0, %stage, {STAGES};
    @%p0 xor.b32 %phase, %phase, 1;
    @%p0 mov.u32 %stage, 0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, {steps};
    @%p0 bra LOOP;
    mov.u32 %c, out;
    sub.u32 %y3, %t, 128;
    shr.u32 %y3, %y3, 5;
    shl.b32 %y3, %y3, 4;
    and.b32 %row, %lane, 15;
    add.u32 %row, %row, %y3;
{epilogue}
    fence.proxy.async.shared::cta;
    bar.sync 1, 128;
    setp.eq.u32 %p3, %t, 128;
    @!%p3 bra END;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%mc, {{%n0, %m0}}], [%c];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
END:
    barrier.cluster.arrive;
    barrier.cluster.wait;",
            bytes = 16384 * STAGES,
        ),
    )
}

/// A row-major matrix of halves whose values are small integers.
fn matrix(memory: &mut GlobalMemory, random: &mut Random, rows: u64, cols: u64) -> (u64, Vec<i64>) {
    let values: Vec<i64> = (0..rows * cols)
        .map(|_| random.below(5) as i64 - 2)
        .collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|v| half::f16::from_f32(*v as f32).to_bits().to_le_bytes())
        .collect();
    let at = memory.alloc(2 * rows * cols, 256).expect("memory");
    memory.write(at, &bytes).expect("a write");
    (at, values)
}

fn map(address: u64, cols: u64, rows: u64, box_rows: u32) -> Arg {
    let map = TensorMap {
        sizes: vec![cols, rows],
        strides: vec![2 * cols],
        box_sizes: vec![64, box_rows],
        swizzle: TensorSwizzle::Bytes128,
        ..TensorMap::new(TensorElement::F16, address)
    };
    Arg::Bytes(map.encode().expect("a correct map").to_vec())
}

/// Runs the kernel; whether the product is right, and what was found.
fn go(text: &str) -> (bool, Report) {
    checked(text, true)
}

/// The same with or without the sanitizer.
fn checked(text: &str, sanitize: bool) -> (bool, Report) {
    let module = Module::parse_strict(text).unwrap_or_else(|e| panic!("{e}"));
    let (mut memory, mut random) = (GlobalMemory::new(), Random(3));
    let (a, left) = matrix(&mut memory, &mut random, M, K);
    let (b, right) = matrix(&mut memory, &mut random, N, K);
    let c = memory.alloc(2 * M * N, 256).expect("memory");
    let launch = Launch {
        grid: [M as u32 / 64, N as u32 / 64, 1],
        block: [256, 1, 1],
        cluster: [2, 1, 1],
        args: vec![map(a, K, M, 64), map(b, K, N, 32), map(c, N, M, 64)],
        ..Launch::default()
    };
    let options = Options {
        step_limit: 1 << 18,
        sanitize,
        ..Options::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &options).expect("a launch");
    let got = memory.read(c, 2 * (M * N) as usize).expect("a read");
    let (k, n) = (K as usize, N as usize);
    let right = got.as_chunks::<2>().0.iter().enumerate().all(|(at, x)| {
        let (i, j) = (at / n, at % n);
        let sum: i64 = (0..k).map(|l| left[i * k + l] * right[j * k + l]).sum();
        half::f16::from_f32(sum as f32).to_bits() == u16::from_le_bytes(*x)
    });
    (right, report)
}

#[test]
fn the_product_is_right_and_clean() {
    let text = text();
    assembles("gemm", &text);
    let (right, report) = go(&text);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert!(right);
    let (right, report) = checked(&text, false);
    assert!(right && report.is_clean());
}

#[test]
fn mutants_are_found() {
    let good = text();
    let mutants: [(&str, &str, &str); 22] = [
        ("no init fence", "fence.mbarrier_init.release.cluster;", ""),
        ("the wrong count", "[%empty], 2;", "[%empty], 1;"),
        ("a count too large", "[%full], 1;", "[%full], 2;"),
        (
            "no first barrier",
            "MADE:\n    barrier.cluster.arrive.release;\n    barrier.cluster.wait.acquire;",
            "MADE:",
        ),
        (
            "a barrier of the block",
            "MADE:\n    barrier.cluster.arrive.release;\n    barrier.cluster.wait.acquire;",
            "MADE:\n    bar.sync 0;",
        ),
        (
            "the producer's parity",
            "xor.b32 %y1, %phase, 1;",
            "mov.u32 %y1, %phase;",
        ),
        ("no wait for empty", "    @!%done bra FREE;", ""),
        ("too few bytes", "[%full], 16384;", "[%full], 12288;"),
        ("too many bytes", "[%full], 16384;", "[%full], 20480;"),
        (
            "only the own half",
            "mov.u16 %mask, 3;",
            "mov.u16 %mask, 1;",
        ),
        (
            "both halves in one place",
            "mad.lo.u32 %y5, %rank, 4096, %y2;",
            "mov.u32 %y5, %y2;",
        ),
        (
            "the wrong stage",
            "mad.lo.u32 %y2, %stage, 16384, %base;\n    cvt",
            "mov.u32 %y2, %base;\n    cvt",
        ),
        ("no wait for full", "    @!%done bra FILLED;", ""),
        ("the consumer's phase", "[%full], %phase;", "[%full], 0;"),
        ("no wgmma fence", "wgmma.fence.sync.aligned;", ""),
        (
            "no wait for wgmma",
            "wgmma.wait_group.sync.aligned 0;",
            "wgmma.wait_group.sync.aligned 1;",
        ),
        (
            "one arrival",
            "setp.lt.u32 %p2, %t, 130;",
            "setp.lt.u32 %p2, %t, 129;",
        ),
        (
            "arrivals at the own block",
            "sub.u32 %y3, %t, 128;\n    mapa",
            "mov.u32 %y3, %rank;\n    mapa",
        ),
        (
            "no fence before the store",
            "fence.proxy.async.shared::cta;",
            "",
        ),
        ("no barrier before the store", "bar.sync 1, 128;", ""),
        (
            "no wait for the store",
            "cp.async.bulk.wait_group.read 0;",
            "",
        ),
        (
            "no last barrier",
            "END:\n    barrier.cluster.arrive;\n    barrier.cluster.wait;",
            "END:",
        ),
    ];
    let mut survivors = Vec::new();
    for (name, from, to) in mutants {
        assert!(good.contains(from), "{name}");
        let (right, report) = go(&good.replacen(from, to, 1));
        if report.is_clean() && report.notes.is_empty() {
            survivors.push(format!(
                "{name}: {}",
                if right { "right" } else { "wrong numbers" }
            ));
        }
    }
    assert!(survivors.is_empty(), "without a finding: {survivors:#?}");
}
