//! Tensor maps that a kernel makes of zeros, as compilers of tile languages do: fields by `tensormap.replace`, the way to global memory, and the fences that a
//! tensor copy needs to see them. Right programs are silent and copy the right elements; each fence that is left out is a finding.

mod common;

use common::{assembles, kernel, kinds};
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// The fields of a map of 16 rows of 64 elements in 256 bytes each, boxes of 32 × 2, as `(field, ordinal, value)`.
const FIELDS: [(&str, &str, &str); 13] = [
    ("rank", "", "1"),
    ("box_dim", "0, ", "32"),
    ("box_dim", "1, ", "2"),
    ("global_dim", "0, ", "64"),
    ("global_dim", "1, ", "16"),
    ("global_stride", "0, ", "%pitch"),
    ("element_stride", "0, ", "1"),
    ("element_stride", "1, ", "1"),
    ("elemtype", "", "2"),
    ("interleave_layout", "", "0"),
    ("swizzle_mode", "", "0"),
    ("fill_mode", "", "0"),
    ("global_address", "", "%in"),
];

/// How the map comes to global memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// `tensormap.cp_fenceproxy`, which releases.
    Fenced,
    /// Loads and stores of the warp.
    Stores,
    /// A bulk copy.
    Bulk,
    /// Fields are replaced in global memory.
    InPlace,
}

/// The kernel: one warp makes the map, lane 0 copies the box at (32, 6) to shared memory, and all store its 64 elements to `out`.
fn text(way: Way, fields: &[(&str, &str, &str)], release: bool, acquire: bool) -> String {
    let (space, at) = if way == Way::InPlace {
        ("global", "%map")
    } else {
        ("shared::cta", "%own")
    };
    let fields: Vec<String> = fields
        .iter()
        .map(|(field, ordinal, value)| {
            let bits = if field.contains("stride") && !field.contains("element")
                || *field == "global_address"
            {
                64
            } else {
                32
            };
            format!("@%first tensormap.replace.tile.{field}.{space}.b1024.b{bits} [{at}], {ordinal}{value};\n")
        })
        .collect();
    let fields = fields.concat();
    let publish = match way {
        Way::Fenced => {
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%own], 128;"
        }
        Way::Stores => {
            "ld.shared.b32 %r1, [%mine]; mad.wide.u32 %x, %lane, 4, %map; st.global.b32 [%x], %r1;"
        }
        Way::Bulk => {
            "fence.proxy.async.shared::cta;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%map], [%own], 128;
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;"
        }
        Way::InPlace => "",
    };
    let release = if release {
        "fence.proxy.tensormap::generic.release.gpu;"
    } else {
        ""
    };
    let acquire = if acquire {
        "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;"
    } else {
        ""
    };
    kernel(
        ".param .u64 in, .param .u64 map, .param .u64 out",
        &format!(
            ".reg .b32 %r<8>, %lane, %own, %mine, %data, %bar; .reg .b64 %in, %map, %out, %pitch, %x; .reg .pred %first, %done;
    .shared .align 128 .b8 tm[128];
    .shared .align 128 .b8 data[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 %in, [in];
    ld.param.u64 %map, [map];
    ld.param.u64 %out, [out];
    mov.u64 %pitch, 256;
    mov.u32 %lane, %tid.x;
    setp.eq.u32 %first, %lane, 0;
    mov.u32 %own, tm;
    mov.u32 %data, data;
    mov.u32 %bar, bar;
    mad.lo.u32 %mine, %lane, 4, %own;
    st.shared.b32 [%mine], 0;
    bar.warp.sync 0xffffffff;
    {fields}
    bar.warp.sync 0xffffffff;
    {publish}
    bar.warp.sync 0xffffffff;
    {release}
    {acquire}
    @!%first bra WAIT;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;
    mov.u32 %r2, 32;
    mov.u32 %r3, 6;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%data], [%map, {{%r2, %r3}}], [%bar];
WAIT:
    bar.sync 0;
AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;
    @!%done bra AGAIN;
    mad.lo.u32 %r4, %lane, 8, %data;
    ld.shared.v2.b32 {{%r5, %r6}}, [%r4];
    mad.wide.u32 %x, %lane, 8, %out;
    st.global.v2.b32 [%x], {{%r5, %r6}};"
        ),
    )
}

/// A run, and a second one on the same memory: `out` after each.
fn launch(text: &str, runs: usize) -> (Vec<u32>, Report) {
    let module = Module::parse_strict(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let [input, map, out] = [4096, 128, 256].map(|n| memory.alloc(n, 256).expect("memory"));
    let data: Vec<u8> = (0..1024u32).flat_map(u32::to_le_bytes).collect();
    memory.write(input, &data).expect("a write");
    memory.write(map, &[0; 128]).expect("a write");
    let launch = Launch {
        args: [input, map, out].map(Arg::Ptr).to_vec(),
        ..Launch::default()
    };
    let mut report = None;
    for _ in 0..runs {
        let options = Options {
            step_limit: 10_000,
            ..Options::default()
        };
        report = Some(run(&module, "k", &launch, &mut memory, &options).expect("a launch"));
    }
    let data = memory.read(out, 256).expect("a read");
    let words = data.as_chunks::<4>().0.iter();
    let words = words.map(|b| u32::from_le_bytes(*b)).collect();
    (words, report.expect("a run"))
}

const WAYS: [Way; 4] = [Way::Fenced, Way::Stores, Way::Bulk, Way::InPlace];

#[test]
fn maps_of_zeros_are_right_and_silent() {
    let expected: Vec<u32> = (0..64).map(|i| (6 + i / 32) * 64 + 32 + i % 32).collect();
    for way in WAYS {
        let text = text(way, &FIELDS, way != Way::Fenced, true);
        assembles("zeros", &text);
        // The second run begins with the map of the first in global memory.
        for runs in [1, 2] {
            let (out, report) = launch(&text, runs);
            assert!(report.is_clean(), "{way:?} {runs}: {:#?}", report.findings);
            assert_eq!(out, expected, "{way:?} {runs}");
        }
    }
}

#[test]
fn each_fence_is_missed() {
    for way in WAYS {
        let (_, report) = launch(&text(way, &FIELDS, way != Way::Fenced, false), 1);
        assert_eq!(kinds(&report), [FindingKind::MissingProxyFence], "{way:?}");
        let message = &report.findings[0].message;
        assert!(message.contains("::generic.acquire.gpu ["), "{message}");
        if way != Way::Fenced {
            let (_, report) = launch(&text(way, &FIELDS, false, true), 1);
            assert_eq!(kinds(&report), [FindingKind::MissingProxyFence], "{way:?}");
            let message = &report.findings[0].message;
            assert!(message.contains("::generic.release.gpu"), "{message}");
        }
    }
}

#[test]
fn a_map_changed_after_the_acquire_is_stale() {
    let right = text(Way::Fenced, &FIELDS, false, true);
    let again = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%own], 128;\n    @!%first bra WAIT;";
    let change = format!(
        "@%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%own], 1, 12;\n    bar.warp.sync 0xffffffff;\n    {again}"
    );
    let (_, report) = launch(&right.replacen("@!%first bra WAIT;", &change, 1), 1);
    assert_eq!(kinds(&report), [FindingKind::MissingProxyFence]);
}

#[test]
fn fields_that_are_wrong_or_missing_are_named() {
    let with = |field: &str, ordinal: &str, value: &'static str| {
        let mut fields = FIELDS;
        for f in &mut fields {
            if f.0 == field && f.1.starts_with(ordinal) {
                f.2 = value;
            }
        }
        text(Way::Fenced, &fields, false, true)
    };
    let without = |field: &str, ordinal: &str| {
        let rest = FIELDS
            .iter()
            .filter(|f| f.0 != field || !f.1.starts_with(ordinal));
        text(Way::Fenced, &rest.copied().collect::<Vec<_>>(), false, true)
    };
    for (text, says) in [
        (with("rank", "", "5"), "the value 5 of .rank"),
        (with("elemtype", "", "13"), "the value 13 of .elemtype"),
        (
            with("swizzle_mode", "", "4"),
            "the value 4 of .swizzle_mode",
        ),
        (with("fill_mode", "", "2"), "the value 2 of .fill_mode"),
        (
            with("interleave_layout", "", "3"),
            "the value 3 of .interleave_layout",
        ),
        (with("box_dim", "0", "257"), "box sizes from 1 to 256"),
        (with("box_dim", "0", "2"), "multiple of 16 bytes"),
        (with("global_stride", "0", "24"), "multiples of 16 bytes"),
        (
            with("element_stride", "1", "9"),
            "element strides from 1 to 8",
        ),
        (with("fill_mode", "", "1"), "floating-point"),
        (without("rank", ""), "its rank was never set"),
        (without("box_dim", "1"), "its box_dim 1 was never set"),
        (
            without("element_stride", "0"),
            "its element_stride 0 was never set",
        ),
    ] {
        let (_, report) = launch(&text, 1);
        let found = report
            .findings
            .iter()
            .find(|f| f.kind == FindingKind::TensorMap);
        let found = found.unwrap_or_else(|| panic!("{says}: {:#?}", report.findings));
        assert!(found.message.contains(says), "{says}: {}", found.message);
    }
    // Shared memory that nothing has set to zero.
    let unset = text(Way::Fenced, &FIELDS, false, true).replace("st.shared.b32 [%mine], 0;", "");
    let (_, report) = launch(&unset, 1);
    let found = report
        .findings
        .iter()
        .find(|f| f.kind == FindingKind::TensorMap);
    let message = &found.expect("a finding").message;
    assert!(
        message.contains("neither a tensor map nor all zero"),
        "{message}"
    );
}

#[test]
fn subnormal_numbers_are_flushed_for_ftz_types() {
    for (element, bits) in [("7", 5u32), ("8", 0), ("11", 0), ("12", 0)] {
        let mut fields = FIELDS;
        for f in fields.iter_mut().filter(|f| f.0 == "elemtype") {
            f.2 = element;
        }
        let text = text(Way::Fenced, &fields, false, true);
        let (out, report) = launch(&text, 1);
        assert!(report.is_clean(), "{:#?}", report.findings);
        // Elements are small integers, which are subnormal as f32; tf32 rounds them off.
        let expected = if bits == 0 { 0 } else { 6 * 64 + 32 };
        assert_eq!(out[0], expected, "elemtype {element}");
    }
}
