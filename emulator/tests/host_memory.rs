//! What a driver on the emulator needs: memory that the host shares, copies that keep what was never written, variables that outlive a launch, and samples.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, run};

/// `store` adds 1 to `count` and writes the block's number to its word of `out`; `add` adds the word of `from` to that of `out`.
const TEXT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared = 40;
.visible .global .align 4 .u32 count = 100;
.visible .global .align 8 .u64 pointer = count;
.visible .entry store(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %ctaid.x;
    mad.wide.u32 %d1, %r0, 4, %d0;
    st.global.u32 [%d1], %r0;
    mov.u64 %d2, pointer;
    ld.global.u64 %d3, [%d2];
    red.global.add.u32 [%d3], 1;
    mov.u64 %d2, shared;
    ld.global.u32 %r1, [%d2];
    st.global.u32 [%d2], %r1;
    ret;
}
.visible .entry add(.param .u64 out, .param .u64 from)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    ld.param.u64 %d1, [from];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d2, %r0, 4, %d0;
    mad.wide.u32 %d3, %r0, 4, %d1;
    ld.global.u32 %r1, [%d3];
    st.global.u32 [%d2], %r1;
    ret;
}";

fn module() -> Module {
    Module::parse_strict(TEXT).expect("PTX")
}

/// Words that live as long as the process.
fn words(count: usize) -> &'static [AtomicU32] {
    let words: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
    words.leak()
}

fn options() -> Options {
    Options {
        undefined_global: true,
        ..Options::default()
    }
}

fn add(out: u64, from: u64, threads: u32, memory: &mut GlobalMemory) -> Vec<FindingKind> {
    let launch = Launch {
        block: [threads, 1, 1],
        args: vec![Arg::Ptr(out), Arg::Ptr(from)],
        ..Launch::default()
    };
    let report = run(&module(), "add", &launch, memory, &options()).expect("a launch");
    report.findings.iter().map(|f| f.kind).collect()
}

#[test]
fn the_host_and_kernels_share_mapped_words() {
    let mut memory = GlobalMemory::new();
    let shared = words(64);
    let place = memory.map(shared).expect("room");
    assert!(memory.map(&shared[8..9]).is_err(), "it is mapped already");
    let out = memory.alloc(256, 256).expect("room");
    shared[5].store(17, Relaxed);
    assert_eq!(add(out, place, 64, &mut memory), []);
    assert_eq!(
        memory.read(out + 20, 4).expect("a word"),
        17u32.to_le_bytes()
    );
    assert_eq!(add(place, out, 64, &mut memory), []);
    // One word beyond the end, whoever lies there on the host.
    assert_eq!(
        add(out, place + 4, 64, &mut memory),
        [FindingKind::OutOfBounds]
    );
    memory.free(place).expect("it was mapped");
    assert_eq!(add(out, place, 1, &mut memory), [FindingKind::OutOfBounds]);
}

#[test]
fn copies_keep_what_was_never_written() {
    let mut memory = GlobalMemory::new();
    let [a, b, c] = [(); 3].map(|()| memory.alloc(256, 256).expect("room"));
    memory.write(a, &[1; 128]).expect("a write");
    memory.write(b, &[2; 256]).expect("a write");
    memory.copy(b, a, 256).expect("a copy");
    assert_eq!(
        memory.read(b, 256).expect("all"),
        memory.read(a, 256).expect("all")
    );
    assert_eq!(add(c, b, 32, &mut memory), []);
    assert_eq!(add(c, b, 33, &mut memory), [FindingKind::UndefinedGlobal]);
    // Within one allocation, over itself.
    memory.copy(a + 64, a, 128).expect("a copy");
    assert_eq!(memory.read(a, 192).expect("all"), [1; 192]);
    assert!(memory.copy(a, b, 257).is_err() && memory.copy(a + 1, b, 256).is_err());
    assert_eq!((memory.rest(a + 6), memory.rest(64)), (Some(250), None));
}

#[test]
fn variables_outlive_launches_and_samples_leave_blocks_out() {
    let (module, mut memory) = (module(), GlobalMemory::new());
    let managed = words(1);
    let places = module.place_variables(&mut memory, |bytes| (bytes == 4).then_some(managed));
    let variables = places.expect("room");
    assert_eq!(managed[0].load(Relaxed), 40);
    let place = |name: &str| {
        variables
            .iter()
            .find(|v| v.0 == name)
            .expect("a variable")
            .1
    };
    let out = memory.alloc(4 * 64, 256).expect("room");
    let launch = Launch {
        grid: [64, 1, 1],
        block: [1, 1, 1],
        args: vec![Arg::Ptr(out)],
        variables: variables.clone(),
        ..Launch::default()
    };
    let sample = Options {
        sample: 4,
        ..options()
    };
    let report = run(&module, "store", &launch, &mut memory, &sample).expect("a launch");
    assert_eq!(report.blocks, 4);
    assert_eq!(
        memory.read(place("count"), 4).expect("a word"),
        104u32.to_le_bytes()
    );
    // They are spread over the grid.
    for (block, is_run) in [(0, true), (1, false), (16, true), (48, true), (63, false)] {
        let word = memory.read(out + 4 * block, 4).expect("a word");
        let expected = if is_run { block as u32 } else { 0 };
        assert_eq!(word, expected.to_le_bytes());
    }
    let report = run(&module, "store", &launch, &mut memory, &options()).expect("a launch");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(
        memory.read(place("count"), 4).expect("a word"),
        168u32.to_le_bytes()
    );
}
