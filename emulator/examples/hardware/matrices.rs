//! `mma.sync` and `wgmma` of every type on random fragments, with a dense and with a sparse A.
//!
//! A kernel loads the registers of a warp, or the bytes of a warpgroup's matrices, as they are, multiplies once and stores the registers of D. So no
//! layout is needed here: every register holds numbers of its type, wherever they belong.

use crate::Case;
use crate::numbers::{FAMILIES, Format, NAMES, Random};

/// Tiles of each family.
const TILES: u32 = 30;

/// The type of a fragment and how many registers it takes.
type Fragment = (&'static str, usize);

/// All products: file, text and launch.
pub(crate) fn all() -> Vec<(String, String, Case)> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut out = Vec::new();
    for (shape, d, [a, b, c]) in warp_forms() {
        out.push(warp(shape, d, [a, b, c], "", None, &mut random));
    }
    for [a, b] in [["s8", "s8"], ["u8", "s8"]] {
        let fragments = [(a, 4), (b, 2), ("s32", 4)];
        out.push(warp(
            "m16n8k32",
            ("s32", 4),
            fragments,
            ".satfinite",
            None,
            &mut random,
        ));
    }
    for (shape, d, fragments, selectors) in sparse_forms() {
        for selector in 0..selectors {
            let selector = Some(selector);
            out.push(warp(shape, d, fragments, "", selector, &mut random));
        }
    }
    for (k, d, [a, b]) in [
        (16, "f32", ["f16", "f16"]),
        (16, "f16", ["f16", "f16"]),
        (16, "f32", ["bf16", "bf16"]),
        (8, "f32", ["tf32", "tf32"]),
        (32, "f32", ["e4m3", "e4m3"]),
        (32, "f32", ["e5m2", "e5m2"]),
        (32, "f32", ["e4m3", "e5m2"]),
        (32, "f16", ["e4m3", "e4m3"]),
        (32, "s32", ["s8", "u8"]),
    ] {
        out.push(warpgroup(k, d, [a, b], None, &mut random));
        // A row of f16, bf16 or tf32 has metadata in half of the lanes, so that there is a selector.
        let selectors = if k <= 16 { 2 } else { 1 };
        for selector in 0..selectors {
            out.push(warpgroup(2 * k, d, [a, b], Some(selector), &mut random));
        }
    }
    out
}

/// Shapes and types of `mma.sp.sync`: D, then A, B and C, and how many selectors there are.
fn sparse_forms() -> Vec<(&'static str, Fragment, [Fragment; 3], u32)> {
    let mut all = Vec::new();
    let half = ("f16", 2);
    for ty in ["f16", "bf16"] {
        let sum = ("f32", 4);
        all.push(("m16n8k16", sum, [(ty, 2), (ty, 2), sum], 4));
        all.push(("m16n8k32", sum, [(ty, 4), (ty, 4), sum], 2));
    }
    all.push(("m16n8k16", half, [half, half, half], 4));
    all.push(("m16n8k32", half, [("f16", 4), ("f16", 4), half], 2));
    let sum = ("f32", 4);
    all.push(("m16n8k8", sum, [("tf32", 2), ("tf32", 2), sum], 4));
    all.push(("m16n8k16", sum, [("tf32", 4), ("tf32", 4), sum], 2));
    for [a, b] in [["e4m3", "e4m3"], ["e4m3", "e5m2"]] {
        all.push(("m16n8k64", sum, [(a, 4), (b, 4), sum], 1));
    }
    let sum = ("s32", 4);
    all.push(("m16n8k32", sum, [("u8", 2), ("s8", 2), sum], 2));
    all.push(("m16n8k64", sum, [("s8", 4), ("u8", 4), sum], 1));
    all.push(("m16n8k64", sum, [("s4", 2), ("u4", 2), sum], 2));
    all.push(("m16n8k128", sum, [("u4", 4), ("s4", 4), sum], 1));
    all
}

/// What metadata of a sparse A is of type `t`: four bits for each chunk of a row.
fn metadata(t: &str) -> &'static str {
    if t == "tf32" {
        "one of two"
    } else {
        "two of four"
    }
}

/// A register of metadata; `None` if `t` is a type of numbers.
fn metadata_register(t: &str, random: &mut Random) -> Option<u64> {
    // The places of two elements of a chunk, which ascend; of tf32 the two values with a meaning.
    let fours: &[u64] = match t {
        "two of four" => &[0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110],
        "one of two" => &[0b0100, 0b1110],
        _ => return None,
    };
    Some((0..8).fold(0, |word, i| word | random.one(fours) << (4 * i)))
}

/// Shapes and types of `mma.sync`: D, then A, B and C.
fn warp_forms() -> Vec<(&'static str, Fragment, [Fragment; 3])> {
    let mut all = Vec::new();
    for ty in ["f16", "bf16"] {
        all.push(("m16n8k8", ("f32", 4), [(ty, 2), (ty, 1), ("f32", 4)]));
        all.push(("m16n8k16", ("f32", 4), [(ty, 4), (ty, 2), ("f32", 4)]));
    }
    let half = ("f16", 2);
    all.push(("m16n8k8", half, [half, ("f16", 1), half]));
    all.push(("m16n8k16", half, [("f16", 4), half, half]));
    all.push((
        "m16n8k4",
        ("f32", 4),
        [("tf32", 2), ("tf32", 1), ("f32", 4)],
    ));
    all.push((
        "m16n8k8",
        ("f32", 4),
        [("tf32", 4), ("tf32", 2), ("f32", 4)],
    ));
    for [a, b] in [["e4m3", "e4m3"], ["e5m2", "e5m2"], ["e4m3", "e5m2"]] {
        all.push(("m16n8k32", ("f32", 4), [(a, 4), (b, 2), ("f32", 4)]));
    }
    for [a, b] in [["s8", "s8"], ["u8", "s8"]] {
        all.push(("m16n8k16", ("s32", 4), [(a, 2), (b, 1), ("s32", 4)]));
        all.push(("m16n8k32", ("s32", 4), [(a, 4), (b, 2), ("s32", 4)]));
    }
    let sum = ("s32", 4);
    all.push(("m16n8k64", sum, [("s4", 4), ("u4", 2), sum]));
    all.push(("m8n8k32", ("s32", 2), [("s4", 1), ("s4", 1), ("s32", 2)]));
    all.push(("m8n8k4", ("f64", 2), [("f64", 1), ("f64", 1), ("f64", 2)]));
    all.push(("m16n8k4", ("f64", 4), [("f64", 2), ("f64", 1), ("f64", 4)]));
    all.push(("m16n8k8", ("f64", 4), [("f64", 4), ("f64", 2), ("f64", 4)]));
    all.push(("m16n8k16", ("f64", 4), [("f64", 8), ("f64", 4), ("f64", 4)]));
    all
}

fn header(target: &str) -> String {
    format!(".version 8.5\n.target {target}\n.address_size 64\n")
}

/// Random registers of `fragments` for every tile: so many of each type.
fn registers(fragments: &[Fragment], random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for tile in 0..TILES as usize * FAMILIES.len() {
        let family = FAMILIES[tile / TILES as usize];
        for (ty, count) in fragments {
            let format = Format::of(ty);
            for _ in 0..*count {
                let word = metadata_register(ty, random)
                    .unwrap_or_else(|| format.register(family, random))
                    .to_le_bytes();
                bytes.extend_from_slice(&word[..format.bits.max(32) as usize / 8]);
            }
        }
    }
    bytes
}

fn warp(
    shape: &str,
    d: (&'static str, usize),
    [a, b, c]: [Fragment; 3],
    modifier: &str,
    selector: Option<u32>,
    random: &mut Random,
) -> (String, String, Case) {
    let wide = d.0 == "f64";
    let (bits, size) = if wide { ("b64", 8) } else { ("b32", 4) };
    let list = |first: usize, count: usize| {
        let all: Vec<String> = (first..first + count).map(|i| format!("%v{i}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    let mut fragments = vec![a, b, c];
    let (mut sp, mut last) = ("", String::new());
    if let Some(selector) = selector {
        fragments.push((metadata(a.0), 1));
        sp = ".sp::ordered_metadata";
        last = format!(", %v{}, {selector}", a.1 + b.1 + c.1);
    }
    let inputs: usize = fragments.iter().map(|f| f.1).sum();
    let row = 32 * size;
    let loads: String = (0..inputs)
        .map(|i| format!("    ld.global.{bits} %v{i}, [%in+{}];\n", i * row))
        .collect();
    let stores: String = (0..d.1)
        .map(|i| {
            format!(
                "    st.global.{bits} [%out+{}], %v{};\n",
                i * row,
                inputs + i
            )
        })
        .collect();
    let types = format!("{}.{}.{}.{}", d.0, a.0, b.0, c.0);
    let text = format!(
        "{}.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .{bits} %v<{}>;
    .reg .b32 %lane, %tile;
    .reg .b64 %in, %out;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %lane, %tid.x;
    mov.u32 %tile, %ctaid.x;
    mad.wide.u32 %in, %tile, {}, %in;
    mad.wide.u32 %in, %lane, {size}, %in;
    mad.wide.u32 %out, %tile, {}, %out;
    mad.wide.u32 %out, %lane, {size}, %out;
{loads}    mma{sp}.sync.aligned.{shape}.row.col{modifier}.{types} {}, {}, {}, {}{last};
{stores}    ret;
}}
",
        header("sm_90"),
        inputs + d.1,
        inputs * row,
        d.1 * row,
        list(inputs, d.1),
        list(0, a.1),
        list(a.1, b.1),
        list(a.1 + b.1, c.1),
    );
    let name = format!("mma{}.{shape}.{types}{modifier}", sparse_name(selector));
    let grid = TILES * FAMILIES.len() as u32;
    let case = Case {
        module: format!("{name}.ptx"),
        kernel: "k".to_owned(),
        grid,
        block: 32,
        input: registers(&lanes(&fragments, 32), random),
        out_bytes: grid as usize * d.1 * row,
        rows: Vec::new(),
        element: d.0,
        families: NAMES,
        map: None,
        name,
    };
    (case.module.clone(), text, case)
}

/// The fragments of `count` lanes.
fn lanes(fragments: &[Fragment], count: usize) -> Vec<Fragment> {
    fragments.iter().map(|(ty, n)| (*ty, count * n)).collect()
}

/// What the name of a product says about a sparse A.
fn sparse_name(selector: Option<u32>) -> String {
    selector.map_or(String::new(), |s| format!(".sp{s}"))
}

/// `wgmma` with 64 rows and 8 columns, A (2,048 bytes) and B (256 bytes, with a sparse A twice as many) in shared memory without a swizzle.
fn warpgroup(
    k: u32,
    d: &'static str,
    [a, b]: [&'static str; 2],
    selector: Option<u32>,
    random: &mut Random,
) -> (String, String, Case) {
    let registers_d = if d == "f16" { 2 } else { 4 };
    let list: Vec<String> = (0..registers_d).map(|i| format!("%d{i}")).collect();
    let list = list.join(", ");
    // 512 words of A, then B, D by registers of 128 lanes, and the metadata.
    let words_b = if selector.is_some() { 128 } else { 64 };
    let mut parts = vec![(a, 512), (b, words_b), (d, 128 * registers_d)];
    let (mut sp, mut meta, mut load_meta) = ("", String::new(), String::new());
    if let Some(selector) = selector {
        let at = 4 * (512 + words_b + 128 * registers_d);
        parts.push((metadata(a), 128));
        sp = ".sp";
        meta = format!(", %e, {selector}");
        load_meta = format!("    ld.global.b32 %e, [%in+{at}];\n");
    }
    let words: usize = parts.iter().map(|p| p.1).sum();
    let mut moves = String::new();
    for i in 0..4 {
        moves += &format!(
            "    ld.global.b32 %w, [%in+{}];\n    st.shared.b32 [%own+{}], %w;\n",
            512 * i,
            512 * i
        );
    }
    moves += "    @%few ld.global.b32 %w, [%in+2048];\n    @%few st.shared.b32 [%own+2048], %w;\n";
    let places = |space: &str, base: &str, first: usize| -> String {
        (0..registers_d)
            .map(|i| match space {
                "ld" => format!("    ld.global.b32 %d{i}, [{base}+{}];\n", first + 512 * i),
                _ => format!("    st.global.b32 [{base}+{}], %d{i};\n", first + 512 * i),
            })
            .collect()
    };
    let tail = match a {
        "s8" => "p",
        "f16" | "bf16" => "p, 1, 1, 0, 0",
        _ => "p, 1, 1",
    };
    let text = format!(
        "{}.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b32 %d<4>, %t, %tile, %w, %own, %e;
    .reg .b64 %in, %out, %da, %db, %base;
    .reg .pred p, %few;
    .shared .align 128 .b8 tiles[2560];
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %tile, %ctaid.x;
    mad.wide.u32 %in, %tile, {}, %in;
    mad.wide.u32 %in, %t, 4, %in;
    mad.wide.u32 %out, %tile, {}, %out;
    mad.wide.u32 %out, %t, 4, %out;
    mov.u32 %w, tiles;
    mad.lo.u32 %own, %t, 4, %w;
    setp.lt.u32 %few, %t, {words_b};
    cvt.u64.u32 %base, %w;
    shr.u64 %base, %base, 4;
    or.b64 %da, %base, {};
    add.u64 %db, %da, 128;
{moves}{load_meta}{}    fence.proxy.async;
    bar.sync 0;
    setp.eq.u32 p, 0, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async{sp}.sync.aligned.m64n8k{k}.{d}.{a}.{b} {{{list}}}, %da, %db{meta}, {tail};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
{}    ret;
}}
",
        header("sm_90a"),
        words * 4,
        128 * registers_d * 4,
        // Chunks of a row 128 bytes apart, groups of 8 rows 256 bytes.
        (128u64 >> 4) << 16 | (256u64 >> 4) << 32,
        places("ld", "%in", 2048 + 4 * words_b),
        places("st", "%out", 0),
    );
    let name = format!("wgmma{}.m64n8k{k}.{d}.{a}.{b}", sparse_name(selector));
    let grid = TILES * FAMILIES.len() as u32;
    let case = Case {
        module: format!("{name}.ptx"),
        kernel: "k".to_owned(),
        grid,
        block: 128,
        input: registers(&parts, random),
        out_bytes: grid as usize * 128 * registers_d * 4,
        rows: Vec::new(),
        element: d,
        families: NAMES,
        map: None,
        name,
    };
    (case.module.clone(), text, case)
}
