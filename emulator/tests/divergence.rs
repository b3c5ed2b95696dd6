//! Control flow: lanes that part, loop, exit, wait for each other and meet again; and what lanes exchange.

#![allow(clippy::format_push_string, clippy::float_cmp)] // kernels are text put together, and results are exact

mod common;

use common::{Random, block, launch_with, with_out};
use ptx_emulator::Options;

fn clean(body: &str, threads: u32) -> Vec<u32> {
    let (data, report) = block(body, threads, threads as usize);
    assert!(report.is_clean(), "{body}\n{:#?}", report.findings);
    data
}

#[test]
fn if_else_and_nested() {
    let body = "and.b32 %r1, %tid, 3; setp.lt.u32 %p1, %r1, 2; setp.eq.u32 %p2, %r1, 0; setp.eq.u32 %p3, %r1, 2;
    @%p1 bra A;
    @%p3 bra B;
    mov.u32 %r2, 33; bra MEET;
B:  mov.u32 %r2, 22; bra MEET;
A:  @%p2 bra C;
    mov.u32 %r2, 11; bra MEET;
C:  mov.u32 %r2, 44;
MEET: activemask.b32 %r3;
    setp.ne.u32 %p4, %r3, -1; @%p4 mov.u32 %r2, 99;
    st.global.u32 [%mine], %r2;";
    let expected: Vec<u32> = (0..64).map(|t| [44, 11, 22, 33][t % 4]).collect();
    assert_eq!(clean(body, 64), expected);
}

#[test]
fn loops_of_different_lengths_meet() {
    // Sum of 0..tid, with an inner loop of tid % 3.
    let body = "mov.u32 %r1, 0; mov.u32 %r2, 0;
OUTER: setp.ge.u32 %p1, %r1, %tid; @%p1 bra DONE;
    mov.u32 %r3, 0; rem.u32 %r4, %tid, 3;
INNER: setp.ge.u32 %p2, %r3, %r4; @%p2 bra NEXT;
    add.u32 %r2, %r2, 1000; add.u32 %r3, %r3, 1; bra INNER;
NEXT: add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra OUTER;
DONE: bar.sync 0; activemask.b32 %r5; and.b32 %r5, %r5, 1; add.u32 %r2, %r2, %r5;
    st.global.u32 [%mine], %r2;";
    let expected: Vec<u32> = (0..96u32)
        .map(|t| t * t.saturating_sub(1) / 2 + 1000 * t * (t % 3) + 1)
        .collect();
    assert_eq!(clean(body, 96), expected);
}

#[test]
fn early_exits_do_not_keep_the_others_apart() {
    // Inside a divergent region some lanes exit; the rest must meet before the shuffle. Odd lanes take the region.
    let body =
        "and.b32 %r1, %tid, 1; setp.eq.u32 %p1, %r1, 0; setp.gt.u32 %p2, %tid, 20; mov.u32 %r2, 5;
    @%p1 bra MEET;
    @!%p2 bra KEEP;
    exit;
KEEP: mov.u32 %r2, 6;
MEET: activemask.b32 %r3; st.global.u32 [%mine], %r3;";
    let gone: u32 = (21..32).filter(|t| t % 2 == 1).map(|t| 1 << t).sum();
    let data = clean(body, 32);
    for (t, mask) in data.iter().enumerate() {
        assert_eq!(
            *mask,
            if gone >> t & 1 == 1 { 0 } else { !gone },
            "lane {t}"
        );
    }
}

#[test]
fn guarded_exits_in_a_loop() {
    let body = "mov.u32 %r1, 0;
L:  st.global.u32 [%mine], %r1;
    setp.eq.u32 %p1, %r1, %tid; @%p1 exit;
    add.u32 %r1, %r1, 1; bra L;";
    assert_eq!(clean(body, 64), (0..64).collect::<Vec<u32>>());
}

/// Lanes of a warp take a lock in turn: no lane may wait for ever for one that does not get to run.
#[test]
fn spin_locks_among_lanes() {
    let body = "
L:  atom.global.cas.b32 %r1, [%out+256], 0, 1;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
    ld.volatile.global.u32 %r2, [%out+260]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%out+260], %r2;
    membar.gl; atom.global.exch.b32 %r3, [%out+256], 0;";
    let (data, report) = block(body, 64, 66);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(data[65], 64);
}

#[test]
fn lanes_wait_at_a_warp_barrier() {
    let body = "setp.lt.u32 %p1, %lane, 5; mov.u32 %r1, 1;
    @%p1 bra A;
    bar.warp.sync 0xffffffff; mov.u32 %r1, 2; bra E;
A:  bar.warp.sync 0xffffffff; mov.u32 %r1, 3;
E:  st.global.u32 [%mine], %r1;";
    assert_eq!(
        clean(body, 32),
        (0..32)
            .map(|l| if l < 5 { 3 } else { 2 })
            .collect::<Vec<u32>>()
    );
}

#[test]
fn branch_tables() {
    let body = "and.b32 %r1, %tid, 3;
T:  .branchtargets A, B, C, A;
    brx.idx %r1, T;
A:  mov.u32 %r2, 10; bra E;
B:  mov.u32 %r2, 20; bra E;
C:  mov.u32 %r2, 30;
E:  activemask.b32 %r3; popc.b32 %r3, %r3; add.u32 %r2, %r2, %r3; st.global.u32 [%mine], %r2;";
    assert_eq!(
        clean(body, 32),
        (0..32)
            .map(|t| [42, 52, 62, 42][t % 4])
            .collect::<Vec<u32>>()
    );
}

#[test]
fn scopes_labels_and_shadowing() {
    let body = "mov.u32 %r1, 1;
    { .reg .b32 %r1, x; mov.u32 %r1, 2; mov.u32 x, %r1; bra L; mov.u32 x, 9; L: { .reg .b32 x; mov.u32 x, 5; } st.global.u32 [%mine], x; }
    bra L; mov.u32 %r1, 7;
L:  st.global.u32 [%mine+128], %r1;";
    let (data, report) = block(body, 32, 64);
    assert!(report.is_clean());
    assert_eq!((data[0], data[32]), (2, 1));
}

/// A random structured program run by the emulator and, lane by lane, by a plain interpreter of the same choices.
#[test]
fn random_programs_with_nested_ifs_and_loops() {
    struct Maker {
        random: Random,
        text: String,
        labels: u32,
    }
    impl Maker {
        /// Emits statements and returns their meaning as a function on (state, tid).
        fn block(&mut self, depth: u32) -> Box<dyn Fn(u32, u32) -> u32> {
            let mut parts: Vec<Box<dyn Fn(u32, u32) -> u32>> = Vec::new();
            for _ in 0..=self.random.below(3) {
                let kind = if depth == 0 { 0 } else { self.random.below(3) };
                let k = self.random.below(1000) as u32;
                let (m, v) = (1 + self.random.below(5) as u32, self.random.below(5) as u32);
                self.labels += 1;
                let n = self.labels;
                match kind {
                    0 => {
                        self.text +=
                            &format!("mad.lo.u32 %r1, %r1, 3, {k}; xor.b32 %r1, %r1, %tid;\n");
                        parts.push(Box::new(move |s, t| s.wrapping_mul(3).wrapping_add(k) ^ t));
                    }
                    1 => {
                        self.text += &format!(
                            "add.u32 %r2, %tid, %r1; rem.u32 %r2, %r2, {m}; setp.lt.u32 %p1, %r2, {v}; @%p1 bra ELSE{n};\n"
                        );
                        let then = self.block(depth - 1);
                        self.text += &format!("bra END{n};\nELSE{n}:\n");
                        let other = self.block(depth - 1);
                        self.text += &format!("END{n}:\n");
                        parts.push(Box::new(move |s, t| {
                            if t.wrapping_add(s) % m < v {
                                other(s, t)
                            } else {
                                then(s, t)
                            }
                        }));
                    }
                    _ => {
                        let counter = 10 + depth;
                        self.text += &format!(
                            "mov.u32 %r{counter}, 0; LOOP{n}: rem.u32 %r2, %tid, {m}; setp.ge.u32 %p1, %r{counter}, %r2; @%p1 bra OUT{n};\n"
                        );
                        let inner = self.block(depth - 1);
                        self.text += &format!(
                            "add.u32 %r{counter}, %r{counter}, 1; bra LOOP{n};\nOUT{n}:\n"
                        );
                        parts.push(Box::new(move |s, t| (0..t % m).fold(s, |s, _| inner(s, t))));
                    }
                }
            }
            Box::new(move |s, t| parts.iter().fold(s, |s, p| p(s, t)))
        }
    }
    for seed in 1..60 {
        let mut maker = Maker {
            random: Random(seed * 7919),
            text: String::new(),
            labels: 0,
        };
        let meaning = maker.block(4);
        let body = format!(
            "mov.u32 %r1, 1;\n{}\nactivemask.b32 %r3; bar.sync 0;\nsetp.ne.u32 %p2, %r3, -1; @%p2 mov.u32 %r1, 0;\nst.global.u32 [%mine], %r1;",
            maker.text
        );
        let expected: Vec<u32> = (0..64).map(|t| meaning(1, t)).collect();
        assert_eq!(clean(&body, 64), expected, "seed {seed}");
    }
}

#[test]
fn shuffles_by_the_isa_pseudocode() {
    let mut random = Random(41);
    for mode in ["up", "down", "bfly", "idx"] {
        for _ in 0..40 {
            let b = random.below(33) as u32;
            let c = [0x1f, 0, 0x181f, 0x1c1f, 0x1003, 0x1e01][random.below(6) as usize];
            let body = format!(
                "mul.lo.u32 %r1, %tid, 10; mov.u32 %r2, {b};
    shfl.sync.{mode}.b32 %r3|%p1, %r1, %r2, {c}, 0xffffffff;
    selp.u32 %r4, 1000, 0, %p1; add.u32 %r3, %r3, %r4; st.global.u32 [%mine], %r3;"
            );
            let data = clean(&body, 32);
            for lane in 0..32i64 {
                let (bval, cval, seg) =
                    (i64::from(b & 31), i64::from(c & 31), i64::from(c >> 8 & 31));
                let (max, min) = ((lane & seg) | (cval & !seg & 31), lane & seg);
                let (j, ok) = match mode {
                    "up" => (lane - bval, lane - bval >= max),
                    "down" => (lane + bval, lane + bval <= max),
                    "bfly" => (lane ^ bval, lane ^ bval <= max),
                    _ => (min | (bval & !seg), (min | (bval & !seg)) <= max),
                };
                let expected = 10 * if ok { j } else { lane } + if ok { 1000 } else { 0 };
                assert_eq!(
                    i64::from(data[lane as usize]),
                    expected,
                    "{mode} b {b} c {c:#x} lane {lane}"
                );
            }
        }
    }
}

#[test]
fn votes_reductions_and_matches() {
    let store =
        |what: &str| format!("setp.gt.u32 %p1, %tid, 9; {what} st.global.u32 [%mine], %r1;");
    assert_eq!(
        clean(&store("vote.sync.ballot.b32 %r1, %p1, -1;"), 32),
        [!0x3ff; 32]
    );
    assert_eq!(
        clean(
            &store("vote.sync.any.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;"),
            32
        ),
        [1; 32]
    );
    assert_eq!(
        clean(
            &store("vote.sync.all.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;"),
            32
        ),
        [0; 32]
    );
    assert_eq!(
        clean(
            &store("vote.sync.uni.pred %p2, !%p1, -1; selp.u32 %r1, 1, 0, %p2;"),
            32
        ),
        [0; 32]
    );
    assert_eq!(
        clean(&store("redux.sync.add.s32 %r1, %tid, -1;"), 32),
        [496; 32]
    );
    assert_eq!(
        clean(&store("redux.sync.max.u32 %r1, %tid, -1;"), 32),
        [31; 32]
    );
    assert_eq!(
        clean(&store("redux.sync.xor.b32 %r1, %tid, -1;"), 32),
        [0; 32]
    );
    let matched = clean(
        &store("and.b32 %r2, %tid, 1; match.any.sync.b32 %r1, %r2, -1;"),
        32,
    );
    assert_eq!((matched[0], matched[1]), (0x5555_5555, 0xaaaa_aaaa));
    assert_eq!(
        clean(
            &store("mov.u32 %r2, 4; match.all.sync.b32 %r1|%p2, %r2, -1;"),
            32
        ),
        [u32::MAX; 32]
    );
    assert_eq!(
        clean(&store("match.all.sync.b32 %r1|%p2, %tid, -1;"), 32),
        [0; 32]
    );
    let body = "elect.sync %r1|%p2, 0xfffffff0; selp.u32 %r1, 100, %r1, %p2; setp.lt.u32 %p3, %tid, 4; @!%p3 st.global.u32 [%mine], %r1;";
    let (data, _) = block(body, 32, 32);
    assert_eq!((data[4], data[5]), (100, 4));
}

#[test]
fn barrier_reductions() {
    let body = "setp.lt.u32 %p1, %tid, 40; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 1, %p1; bar.red.or.pred %p3, 2, 64, !%p1;
    selp.u32 %r2, 100, 0, %p2; selp.u32 %r3, 1000, 0, %p3; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%mine], %r1;";
    assert_eq!(clean(body, 64), [1040; 64]);
}

#[test]
fn special_registers_of_a_three_dimensional_grid() {
    let body = "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.z;
    mov.u32 %r7, %ntid.y; mad.lo.u32 %r8, %r3, %r7, %r2; mov.u32 %r9, %ntid.x; mad.lo.u32 %r8, %r8, %r9, %r1;
    mov.u32 %r10, %nctaid.x; mad.lo.u32 %r11, %r5, %r10, %r4; mov.u32 %r12, %ctaid.z; mov.u32 %r13, %nctaid.y; mul.lo.u32 %r13, %r13, %r10; mad.lo.u32 %r11, %r12, %r13, %r11;
    mad.lo.u32 %r14, %r11, 24, %r8; mad.wide.u32 %rd1, %r14, 4, %out; mov.u32 %r15, %laneid; mad.lo.u32 %r16, %r6, 100, %r15; st.global.u32 [%rd1], %r16;";
    let (data, report) = launch_with(
        &with_out(body),
        [2, 3, 4],
        [4, 3, 2],
        24 * 24,
        &Options::default(),
    );
    assert!(report.is_clean());
    for (i, x) in data.iter().enumerate() {
        assert_eq!(*x, 400 + i as u32 % 24);
    }
}

#[test]
fn generic_addresses_reach_every_space() {
    let body = ".shared .align 8 .b8 s[256]; .local .align 8 .b8 l[16];
    mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1; mad.wide.u32 %rd2, %tid, 4, %rd2; st.u32 [%rd2], %tid; ld.u32 %r1, [%rd2];
    mov.u64 %rd3, l; cvta.local.u64 %rd4, %rd3; st.u32 [%rd4+4], %r1; ld.local.u32 %r2, [l+4];
    cvta.global.u64 %rd5, %mine; st.u32 [%rd5], %r2;
    isspacep.shared %p1, %rd2; isspacep.global %p2, %rd5; isspacep.local %p3, %rd5; cvta.to.shared.u64 %rd6, %rd2; cvt.u32.u64 %r3, %rd6; ld.shared.u32 %r4, [%r3];
    and.pred %p1, %p1, %p2; @!%p1 st.u32 [%rd5], -1; @%p3 st.u32 [%rd5], -2; setp.ne.u32 %p4, %r4, %tid; @%p4 st.u32 [%rd5], -3;";
    assert_eq!(clean(body, 64), (0..64).collect::<Vec<u32>>());
}

/// Portable and vector code, any number of workers, sanitizer on or off: the same bits.
#[test]
fn every_way_of_running_gives_the_same_bits() {
    let body = "cvt.rn.f32.u32 %f1, %tid; mov.u32 %r1, %ctaid.x; cvt.rn.f32.u32 %f2, %r1; mov.f32 %f3, 0f3dcccccd; mov.u32 %r2, 0;
L:  fma.rn.f32 %f3, %f3, %f1, %f2; mul.f32 %f3, %f3, 0f3e99999a; sub.f32 %f1, %f1, %f3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 40; @%p1 bra L;
    mad.wide.u32 %rd1, %r1, 256, %mine; st.global.f32 [%rd1], %f3;";
    let reference = launch_with(
        &with_out(body),
        [16, 1, 1],
        [64, 1, 1],
        1024,
        &Options::default(),
    )
    .0;
    for (portable, sanitize, workers) in [
        (true, true, 1),
        (true, false, 0),
        (false, false, 1),
        (false, true, 3),
    ] {
        let options = Options {
            portable,
            sanitize,
            workers,
            ..Options::default()
        };
        assert_eq!(
            launch_with(&with_out(body), [16, 1, 1], [64, 1, 1], 1024, &options).0,
            reference
        );
    }
}

#[test]
fn masks_that_differ_by_lane_make_groups() {
    // Four groups of eight lanes: the mask of lane t is 255 << (t & 24).
    let body = "and.b32 %r1, %tid, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;
    redux.sync.add.s32 %r3, %tid, %r2;
    and.b32 %r4, %tid, 1; setp.eq.u32 %p1, %r4, 0;
    vote.sync.ballot.b32 %r5, %p1, %r2;
    setp.gt.u32 %p2, %tid, 7; vote.sync.all.pred %p3, %p2, %r2; selp.u32 %r6, 1, 0, %p3;
    match.any.sync.b32 %r7, %r4, %r2;
    shfl.sync.bfly.b32 %r8, %tid, 7, 31, %r2;
    elect.sync %r9|%p4, %r2;
    mul.lo.u32 %r10, %tid, 24; cvt.u64.u32 %rd1, %r10; add.u64 %rd1, %rd1, %out;
    st.global.u32 [%rd1], %r3; st.global.u32 [%rd1+4], %r5; st.global.u32 [%rd1+8], %r6;
    st.global.u32 [%rd1+12], %r7; st.global.u32 [%rd1+16], %r8; st.global.u32 [%rd1+20], %r9;";
    let (data, report) = block(body, 32, 32 * 6);
    assert!(report.is_clean(), "{:#?}", report.findings);
    for (t, row) in data.chunks_exact(6).enumerate() {
        let t = t as u32;
        let first = t & 0x18;
        let mask = 255 << first;
        let alike = if t & 1 == 0 { 0x5555_5555 } else { 0xaaaa_aaaa };
        let expected = [
            8 * first + 28,
            0x5555_5555 & mask,
            u32::from(first > 0),
            alike & mask,
            first + (7 - t % 8),
            first,
        ];
        assert_eq!(row, expected, "lane {t}");
    }
}

#[test]
fn a_branch_to_the_end_is_an_early_return() {
    // Lanes of the second warp leave by a branch to the last `ret`; the barrier of the others completes and is not divergent.
    let body = "setp.ge.u32 %p1, %tid, 32; @%p1 bra END;
    bar.sync 0;
    st.global.u32 [%mine], 7;
END: ret;";
    let early = body.replace("@%p1 bra END", "@%p1 ret");
    let (by_branch, branch) = block(body, 64, 64);
    let (by_return, ret) = block(&early, 64, 64);
    assert_eq!(by_branch, by_return);
    assert_eq!(by_branch[..32], [7; 32]);
    let kinds = |r: &ptx_emulator::Report| r.findings.iter().map(|f| f.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&branch), kinds(&ret));
    // Within one warp too.
    let (by_branch, branch) = block(&body.replace("32;", "20;"), 32, 32);
    let (by_return, ret) = block(&early.replace("32;", "20;"), 32, 32);
    assert_eq!(by_branch, by_return);
    assert_eq!(by_branch[..20], [7; 20]);
    assert_eq!(kinds(&branch), kinds(&ret));
}

#[test]
fn clocks_move_on_and_repeat() {
    let body = "mov.u32 %r1, %clock; mov.u64 %rd1, %clock64; mov.u64 %rd2, %globaltimer; mov.u32 %r2, %clock;
    mov.u32 %r3, %clock_hi; mov.u32 %r4, %globaltimer_lo; mov.u32 %r5, %globaltimer_hi;
    cvt.u32.u64 %r6, %rd1; cvt.u32.u64 %r7, %rd2;
    mul.lo.u32 %r10, %tid, 20; cvt.u64.u32 %rd3, %r10; add.u64 %rd3, %rd3, %out;
    st.global.u32 [%rd3], %r1; st.global.u32 [%rd3+4], %r6; st.global.u32 [%rd3+8], %r7;
    st.global.u32 [%rd3+12], %r2; st.global.u32 [%rd3+16], %r4;
    or.b32 %r3, %r3, %r5; setp.ne.u32 %p1, %r3, 0; @%p1 trap;";
    let (first, report) = block(body, 96, 96 * 5);
    assert!(report.is_clean(), "{:#?}", report.findings);
    for row in first.chunks_exact(5) {
        assert!(row.windows(2).all(|w| w[0] < w[1]), "{row:?}");
    }
    // The warps of a block share one clock: a later warp reads a later time.
    assert!(first[32 * 5] > first[4] && first[64 * 5] > first[32 * 5 + 4]);
    assert_eq!(first, block(body, 96, 96 * 5).0);
    // A wait by the clock ends.
    let wait = "mov.u64 %rd1, %clock64; add.u64 %rd1, %rd1, 500;
L:  mov.u64 %rd2, %clock64; setp.lt.u64 %p1, %rd2, %rd1; @%p1 bra L;
    st.global.u32 [%mine], 1;";
    assert_eq!(clean(wait, 32), [1; 32]);
}

/// A loop whose only way out is a guarded exit: lanes that part before it meet all the same.
#[test]
fn lanes_meet_before_a_loop_that_only_an_exit_leaves() {
    let body = "setp.eq.u32 %p1, %tid, 0; mov.u32 %r1, 0;
    @!%p1 bra MEET; mov.u32 %r1, 5; MEET: bar.sync 0;
    LOOP: setp.gt.u32 %p2, %r1, 9; @%p2 bra END; add.u32 %r1, %r1, 1; st.global.u32 [%mine], %r1; bra LOOP; END:";
    let (data, report) = common::block(body, 64, 64);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(data, [10; 64]);
}
