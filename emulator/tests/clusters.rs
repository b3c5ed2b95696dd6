//! Addresses of shared memory in a cluster: what instructions gave on an H100 (`fixtures/h100/cluster_addresses.csv`), value for value, and that an instruction of
//! `.shared::cta` with the address of another block is found.

mod common;

use std::collections::BTreeMap;

use common::assembles;
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// Blocks of the cluster that was measured.
const BLOCKS: usize = 4;

/// Where the static variable and dynamic memory lay when it was measured.
const STATIC: u64 = 0x400;
const DYNAMIC: u64 = 0x410;

/// The generic address of shared address 0 then.
const WINDOW: u64 = 0x7f4f_0000_0000;

/// What was measured, by name: a field for each rank, empty if it was not measured.
fn measured() -> BTreeMap<&'static str, Vec<&'static str>> {
    let text = include_str!("fixtures/h100/cluster_addresses.csv");
    let lines = text.lines().filter(|l| !l.starts_with('#')).skip(1);
    let rows = lines.map(|line| {
        let mut fields = line.split(',');
        let name = fields.next().expect("a name");
        (name, fields.collect::<Vec<_>>())
    });
    rows.collect()
}

fn number(field: &str) -> u64 {
    let parsed = match field.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => field.parse(),
    };
    parsed.unwrap_or_else(|e| panic!("{field}: {e}"))
}

/// A kernel whose blocks keep their rank in the variable `own`; `body` leaves its result in `%d`, which becomes the word of its block in the output. `%a` is the address of
/// `own`, `%g` its generic one, `%rd9` the window's.
fn text(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<10>, %a, %low, %two, %rank;
    .reg .b64 %rd<10>, %d, %g, %out;
    .reg .pred %p<4>;
    .shared .align 4 .b32 own;
    ld.param.u64 %out, [out];
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %a, own;
    and.b32 %low, %a, 0xffffff;
    mapa.shared::cluster.u32 %two, %a, 2;
    cvt.u64.u32 %g, %a;
    cvta.shared.u64 %g, %g;
    mov.u64 %rd9, 0;
    cvta.shared.u64 %rd9, %rd9;
    st.shared.u32 [own], %rank;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    {body}
    mov.u32 %r9, %ctaid.x;
    mad.wide.u32 %out, %r9, 8, %out;
    st.global.u64 [%out], %d;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}}
"
    )
}

/// Runs [`text`] in clusters of `cluster` blocks: what each of [`BLOCKS`] blocks got.
fn go(name: &str, body: &str, cluster: usize) -> (Vec<u64>, Report) {
    let text = text(body);
    assembles(name, &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(8 * BLOCKS as u64, 256).expect("memory");
    let launch = Launch {
        grid: [BLOCKS as u32, 1, 1],
        block: [1, 1, 1],
        cluster: [cluster as u32, 1, 1],
        dynamic_shared: 64,
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    memory.write(out, &[0; 8 * BLOCKS]).expect("a write");
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    let data = memory.read(out, 8 * BLOCKS).expect("a read");
    let words = data.as_chunks::<8>().0.iter();
    (words.map(|b| u64::from_le_bytes(*b)).collect(), report)
}

/// What computes each measured value; the widened result is in `%d`.
const BODIES: [(&str, &str); 17] = [
    ("own static", "cvt.u64.u32 %d, %a;"),
    ("own dynamic", "mov.u64 %d, dynamic;"),
    ("own static without cluster", "cvt.u64.u32 %d, %a;"),
    (
        "mapa own to 0",
        "mapa.shared::cluster.u32 %r0, %a, 0; cvt.u64.u32 %d, %r0;",
    ),
    (
        "mapa own to 1",
        "mapa.shared::cluster.u32 %r0, %a, 1; cvt.u64.u32 %d, %r0;",
    ),
    (
        "mapa own to 2",
        "mapa.shared::cluster.u32 %r0, %a, 2; cvt.u64.u32 %d, %r0;",
    ),
    (
        "mapa own to 3",
        "mapa.shared::cluster.u32 %r0, %a, 3; cvt.u64.u32 %d, %r0;",
    ),
    (
        "mapa mapped to 2 to 1",
        "mapa.shared::cluster.u32 %r0, %two, 1; cvt.u64.u32 %d, %r0;",
    ),
    ("generic own", "sub.u64 %d, %g, %rd9;"),
    (
        "generic mapa own to 3",
        "mapa.u64 %d, %g, 3; sub.u64 %d, %d, %rd9;",
    ),
    (
        "getctarank own",
        "getctarank.shared::cluster.u32 %r0, %a; cvt.u64.u32 %d, %r0;",
    ),
    (
        "getctarank mapped to 2",
        "getctarank.shared::cluster.u32 %r0, %two; cvt.u64.u32 %d, %r0;",
    ),
    (
        "ld.shared::cluster low 24 bits",
        "ld.shared::cluster.u32 %r0, [%low]; cvt.u64.u32 %d, %r0;",
    ),
    (
        "ld.shared::cluster own",
        "ld.shared::cluster.u32 %r0, [own]; cvt.u64.u32 %d, %r0;",
    ),
    (
        "ld.shared::cluster mapped to 2",
        "ld.shared::cluster.u32 %r0, [%two]; cvt.u64.u32 %d, %r0;",
    ),
    (
        "ld.shared low 24 bits",
        "ld.shared.u32 %r0, [%low]; cvt.u64.u32 %d, %r0;",
    ),
    (
        "ld.shared mapped to 2",
        "ld.shared.u32 %r0, [%two]; cvt.u64.u32 %d, %r0;",
    ),
];

/// The value that was measured as the emulator should give it: the place within the block, and the window, are the emulator's own.
fn expected(name: &str, field: &str, [at, dynamic]: [u64; 2]) -> u64 {
    let value = number(field);
    if !field.starts_with("0x") {
        return value;
    }
    let value = value
        - if name.starts_with("generic") {
            WINDOW
        } else {
            0
        };
    let (was, is) = match name {
        "own dynamic" => (DYNAMIC, dynamic),
        _ => (STATIC, at),
    };
    value - was + is
}

#[test]
fn addresses_are_those_of_an_h100() {
    let measured = measured();
    assert_eq!(measured.len(), BODIES.len());
    // Where the emulator puts the two in a block without a cluster.
    let places = ["own static", "own dynamic"].map(|name| {
        let (_, body) = BODIES.iter().find(|(n, _)| *n == name).expect("a body");
        go(name, body, 1).0[0]
    });
    for (name, body) in BODIES {
        let cluster = if name.ends_with("without cluster") {
            1
        } else {
            BLOCKS
        };
        let (got, report) = go(name, body, cluster);
        let mut traps = false;
        for (rank, field) in measured[name].iter().enumerate() {
            match *field {
                "" => {}
                "trap" => traps = true,
                _ => assert_eq!(
                    got[rank],
                    expected(name, field, places),
                    "{name}, rank {rank}: {:#x}",
                    got[rank]
                ),
            }
        }
        assert_eq!(!report.is_clean(), traps, "{name}: {:#?}", report.findings);
    }
}

/// The blocks that `body` is found to access out of bounds, one run for each rank, and the message.
fn refused(body: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for rank in 0..BLOCKS {
        let body = format!(
            "mov.u64 %d, 0;
    setp.ne.u32 %p0, %rank, {rank};
    @%p0 bra SKIP;
    {body}
SKIP:"
        );
        let (_, report) = go("refused", &body, BLOCKS);
        for f in &report.findings {
            assert_eq!(f.kind, FindingKind::OutOfBounds, "{f}");
            assert_eq!(f.block, [rank as u32, 0, 0], "{f}");
            found.push((rank, f.message.clone()));
        }
    }
    found
}

#[test]
fn an_instruction_of_shared_cta_reaches_its_own_block_only() {
    let accesses = [
        "ld.shared.u32 %r0, [ADDRESS];",
        "st.shared.u32 [ADDRESS], %rank;",
        "atom.shared.add.u32 %r0, [ADDRESS], 1;",
        "cvt.u64.u32 %rd0, ADDRESS; ld.shared.u32 %r0, [%rd0];",
        "mbarrier.init.shared::cta.b64 [ADDRESS], 1;",
        "cp.async.ca.shared.global [ADDRESS], [%out], 4; cp.async.wait_all;",
    ];
    for access in accesses {
        for (address, home) in [("%low", 0), ("%two", 2)] {
            let found = refused(&access.replace("ADDRESS", address));
            let ranks: Vec<_> = found.iter().map(|(rank, _)| *rank).collect();
            let others: Vec<_> = (0..BLOCKS).filter(|r| *r != home).collect();
            assert_eq!(ranks, others, "{access} {address}");
            for (rank, message) in found {
                let says = [
                    format!("shared memory of block {home} of the cluster"),
                    format!(".shared::cta reaches only that of the executing block, {rank}"),
                ];
                for says in says {
                    assert!(message.contains(&says), "{message}");
                }
            }
        }
    }
}

#[test]
fn generic_addresses_are_of_shared_cta_in_their_own_block() {
    let body = "mapa.u64 %rd0, %g, 1;
    isspacep.shared::cta %p1, %rd0;
    selp.u64 %d, 1, 0, %p1;
    isspacep.shared::cluster %p1, %rd0;
    @%p1 add.u64 %d, %d, 2;
    isspacep.shared::cta %p1, %g;
    @%p1 add.u64 %d, %d, 4;
    ld.u32 %r0, [%rd0];
    cvt.u64.u32 %rd1, %r0;
    mad.lo.u64 %d, %rd1, 8, %d;";
    let (got, report) = go("spaces", body, BLOCKS);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(got, [14, 15, 14, 14]);
}

#[test]
fn a_block_that_the_cluster_has_not_is_named() {
    let (_, report) = go(
        "beyond",
        "mapa.shared::cluster.u32 %r1, %a, 5; ld.shared::cluster.u32 %r0, [%r1]; cvt.u64.u32 %d, %r0;",
        BLOCKS,
    );
    let found = report.findings.first().expect("a finding");
    assert_eq!(found.kind, FindingKind::OutOfBounds);
    assert!(
        found.message.contains("block 5 of a cluster of 4"),
        "{found}"
    );
}

/// Blocks read what their neighbours keep, and then change their own: a barrier of the cluster must lie between, and is enough.
#[test]
fn blocks_may_write_what_others_have_read_after_a_barrier() {
    let barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
    for between in [barrier, ""] {
        let step = format!(
            "ld.shared::cluster.u32 %r0, [%r1]; {between} add.u32 %rank, %rank, 4; st.shared.u32 [own], %rank; {barrier}"
        );
        let body = format!(
            "xor.b32 %r2, %rank, 1; mapa.shared::cluster.u32 %r1, %a, %r2;
    {step} {step} {step}
    ld.shared::cluster.u32 %r0, [%r1]; cvt.u64.u32 %d, %r0;"
        );
        let (got, report) = go("neighbours", &body, BLOCKS);
        if between.is_empty() {
            let kinds: Vec<_> = report.findings.iter().map(|f| f.kind).collect();
            assert!(kinds.contains(&FindingKind::SharedRace), "{kinds:?}");
        } else {
            assert!(report.is_clean(), "{:#?}", report.findings);
            assert_eq!(got, [13, 12, 15, 14]);
        }
    }
}

/// One block writes into the memory of another, from which a third has read: a barrier of the cluster must lie between, and is enough.
#[test]
fn a_block_may_write_elsewhere_what_a_third_has_read_after_a_barrier() {
    let barrier = "barrier.cluster.arrive; barrier.cluster.wait;";
    for between in [barrier, ""] {
        let body = format!(
            "mov.u64 %d, 0;
    mapa.shared::cluster.u32 %r1, %a, 2;
    setp.eq.u32 %p1, %rank, 0; setp.eq.u32 %p2, %rank, 1;
    @%p1 ld.shared::cluster.u32 %r0, [%r1];
    {between}
    @%p2 st.shared::cluster.u32 [%r1], 7;"
        );
        let (_, report) = go("thirds", &body, BLOCKS);
        let kinds: Vec<_> = report.findings.iter().map(|f| f.kind).collect();
        if between.is_empty() {
            assert_eq!(kinds, [FindingKind::SharedRace]);
        } else {
            assert!(kinds.is_empty(), "{:#?}", report.findings);
        }
    }
}

/// Threads of a warpgroup, and bytes of shared memory that they fill with halves, 32 bytes each.
const THREADS: usize = 128;
const FILLED: usize = 16 * THREADS * 2;

/// Element `number` of shared memory.
fn element(number: usize) -> f32 {
    (number * number % 7) as f32
}

/// The product of the 64 × 16 matrix at byte 0 and the transpose of its first eight rows, where the second half of a row lies `leading` bytes behind the first and
/// eight rows take 128 bytes (PTX ISA, section 9.7.15.5.1, no swizzle, K-major).
fn product(leading: usize) -> Vec<f32> {
    let at = |row: usize, k: usize| {
        let byte = 16 * (row % 8) + 128 * (row / 8) + leading * (k / 8) + 2 * (k % 8);
        element(byte / 2)
    };
    let entry = |i: usize| (0..16).map(|k| at(i / 8, k) * at(i % 8, k)).sum();
    (0..64 * 8).map(entry).collect()
}

/// The products that two blocks of a cluster get from a descriptor whose address goes through `mask`.
fn products(mask: &str) -> Vec<Vec<f32>> {
    let text = format!(
        ".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
    .reg .b32 %r<10>, %t;
    .reg .b64 %rd<4>, %d, %out, %in;
    .reg .f32 %f<4>;
    .shared .align 1024 .b8 data[{FILLED}];
    ld.param.u64 %out, [out];
    ld.param.u64 %in, [in];
    mov.u32 %t, %tid.x;
    mov.u32 %r0, data;
    mad.lo.u32 %r1, %t, 32, %r0;
    mad.wide.u32 %rd0, %t, 32, %in;
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd0];
    st.shared.v4.u32 [%r1], {{%r4, %r5, %r6, %r7}};
    ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd0+16];
    st.shared.v4.u32 [%r1+16], {{%r4, %r5, %r6, %r7}};
    fence.proxy.async;
    bar.sync 0;
    {mask}
    shr.u32 %r0, %r0, 4;
    cvt.u64.u32 %d, %r0;
    or.b64 %d, %d, 0x800400000;
    mov.f32 %f0, 0f00000000;
    mov.f32 %f1, 0f00000000;
    mov.f32 %f2, 0f00000000;
    mov.f32 %f3, 0f00000000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %d, %d, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r2, %r2, {THREADS}, %t;
    mad.wide.u32 %rd1, %r2, 16, %out;
    st.global.v4.f32 [%rd1], {{%f0, %f1, %f2, %f3}};
    ret;
}}
"
    );
    assembles("products", &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let bytes = 2 * 16 * THREADS;
    let out = memory.alloc(bytes as u64, 256).expect("memory");
    let input = memory.alloc(FILLED as u64, 256).expect("memory");
    let halves: Vec<u8> = (0..FILLED / 2)
        .flat_map(|i| half::f16::from_f32(element(i)).to_le_bytes())
        .collect();
    memory.write(input, &halves).expect("a write");
    let launch = Launch {
        grid: [2, 1, 1],
        block: [THREADS as u32, 1, 1],
        cluster: [2, 1, 1],
        args: vec![Arg::Ptr(out), Arg::Ptr(input)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert!(report.is_clean(), "{:#?}", report.findings);
    let data = memory.read(out, bytes).expect("a read");
    let words = data.as_chunks::<4>().0.iter();
    let words: Vec<f32> = words.map(|b| f32::from_le_bytes(*b)).collect();
    let block = |words: &[f32]| {
        let mut d = vec![0.0; 64 * 8];
        for (i, x) in words.iter().enumerate() {
            let (t, e) = (i / 4, i % 4);
            let row = 16 * (t / 32) + t % 32 / 4 + 8 * (e / 2);
            d[8 * row + 2 * (t % 4) + e % 2] = *x;
        }
        d
    };
    words.chunks_exact(4 * THREADS).map(block).collect()
}

#[test]
fn the_rank_in_a_descriptor_moves_the_leading_offset() {
    let (right, wrong) = (product(1024), product(1024 + 256));
    assert_ne!(right, wrong);
    assert_eq!(
        products("and.b32 %r0, %r0, 0x3ffff;"),
        [right.clone(), right.clone()]
    );
    // Bit 24 of the address is bit 20 of the descriptor, bit 4 of the leading offset in units of 16 bytes.
    assert_eq!(products(""), [right, wrong]);
}
