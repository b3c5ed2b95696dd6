//! Textures and surfaces against a reference that follows the CUDA programming guide's formulas, in f64 and with indices by hand; and what is wrong with each is
//! a finding.

// Sums of the reference are exact; loops over dimensions index several lists.
#![allow(clippy::float_cmp, clippy::needless_range_loop)]

mod common;

use common::{Random, kernel, kinds};
use ptx_emulator::{
    AddressMode, Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, Texel, Texture,
    run,
};

const MODES: [AddressMode; 4] = [
    AddressMode::Clamp,
    AddressMode::Border,
    AddressMode::Wrap,
    AddressMode::Mirror,
];

/// Runs `body` for as many threads as there are `inputs`, four words each in `%c0` to `%c3` (and `%x0` to `%x3` as f32); what it leaves in `%d0` to `%d3` comes back.
fn lookups(
    body: &str,
    declarations: &str,
    inputs: &[[u32; 4]],
    handle: u64,
    memory: &mut GlobalMemory,
    variables: &[(&str, u64)],
) -> (Vec<[u32; 4]>, Report) {
    let text = kernel(
        ".param .u64 tex, .param .u64 in, .param .u64 out, .param .u32 n",
        &format!(
            ".reg .b32 %c<4>, %d<4>, %t, %n; .reg .f32 %x<4>; .reg .b64 %tex, %in, %out; .reg .pred %p, %q;
    ld.param.u64 %tex, [tex];
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mad.lo.u32 %t, %ctaid.x, 128, %t;
    setp.ge.u32 %p, %t, %n;
    @%p ret;
    mad.wide.u32 %in, %t, 16, %in;
    mad.wide.u32 %out, %t, 16, %out;
    ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%in];
    mov.b32 %x0, %c0; mov.b32 %x1, %c1; mov.b32 %x2, %c2; mov.b32 %x3, %c3;
    mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
    {body}
    st.global.v4.b32 [%out], {{%d0, %d1, %d2, %d3}};"
        ),
    );
    // Declarations of the module come before the kernel.
    let text = text.replacen(".visible", &format!("{declarations}\n.visible"), 1);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let bytes = 16 * inputs.len() as u64;
    let [input, out] = [0; 2].map(|_| memory.alloc(bytes, 256).expect("memory"));
    let data: Vec<u8> = inputs
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    memory.write(input, &data).expect("a write");
    let launch = Launch {
        grid: [(inputs.len() as u32).div_ceil(128), 1, 1],
        block: [128, 1, 1],
        args: vec![
            Arg::U64(handle),
            Arg::Ptr(input),
            Arg::Ptr(out),
            Arg::U32(inputs.len() as u32),
        ],
        variables: variables
            .iter()
            .map(|(n, a)| ((*n).to_owned(), *a))
            .collect(),
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, memory, &Options::default()).expect("a launch");
    let data = memory.read(out, bytes as usize).expect("a read");
    let words = data
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| u32::from_le_bytes(*b));
    let words: Vec<u32> = words.collect();
    let rows = words.as_chunks::<4>().0.to_vec();
    (rows, report)
}

/// An array of f32 of `size`, `pad` bytes behind each row, and the memory with it.
fn array(size: &[u32], pad: u64, random: &mut Random) -> (GlobalMemory, Texture, Vec<f32>) {
    let mut memory = GlobalMemory::new();
    let rows: u32 = size[1..].iter().product();
    let pitch = u64::from(size[0]) * 4 + pad;
    let address = memory.alloc(pitch * u64::from(rows), 256).expect("memory");
    let mut values = Vec::new();
    for row in 0..u64::from(rows) {
        let line: Vec<f32> = (0..size[0])
            .map(|_| random.below(1 << 12) as f32 - 2048.0)
            .collect();
        let bytes: Vec<u8> = line.iter().flat_map(|x| x.to_le_bytes()).collect();
        memory
            .write(address + row * pitch, &bytes)
            .expect("a write");
        values.extend(line);
    }
    let texture = Texture {
        pitch,
        ..Texture::new(Texel::F32, 1, size, address)
    };
    (memory, texture, values)
}

/// The index of texel `i` of `n`, found by walking; `None` on the border.
fn walk(mode: AddressMode, normalized: bool, i: i64, n: i64) -> Option<i64> {
    let inside = (0..n).contains(&i);
    match mode {
        AddressMode::Border => inside.then_some(i),
        AddressMode::Wrap if normalized => {
            let mut i = i;
            while i < 0 {
                i += n;
            }
            while i >= n {
                i -= n;
            }
            Some(i)
        }
        AddressMode::Mirror if normalized => {
            let mut i = i;
            while !(0..n).contains(&i) {
                i = if i < 0 { -1 - i } else { 2 * n - 1 - i };
            }
            Some(i)
        }
        _ => Some(if i < 0 { 0 } else { i.min(n - 1) }),
    }
}

#[test]
fn samples_follow_the_formulas() {
    let mut random = Random(7);
    for size in [&[9][..], &[7, 5], &[4, 3, 5]] {
        for mode in MODES {
            for (linear, normalized) in [(false, false), (true, false), (false, true), (true, true)]
            {
                let (mut memory, texture, values) = array(size, 28, &mut random);
                let texture = Texture {
                    linear,
                    normalized,
                    modes: [mode; 3],
                    border: [-7.5, 0.0, 0.0, 0.0],
                    ..texture
                };
                let handle = memory.bind_texture(texture).expect("a texture");
                let mut inputs = Vec::new();
                for _ in 0..200 {
                    // Sixteenths of a texel, some outside; exact when normalised for sizes that are powers of two, near enough for others.
                    let coordinate = |d: usize, random: &mut Random| {
                        let n = size.get(d).map_or(1.0, |n| f64::from(*n));
                        let x = (random.below(16 * 3 * n as u64) as f64 + 0.37) / 16.0 - n;
                        (if normalized { x / n } else { x }) as f32
                    };
                    let c = [0, 1, 2].map(|d| coordinate(d, &mut random).to_bits());
                    inputs.push([c[0], c[1], c[2], 0]);
                }
                let body = match size.len() {
                    1 => "tex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0}];",
                    2 => "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0, %x1}];",
                    _ => "tex.3d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0, %x1, %x2, %x3}];",
                };
                let (out, report) = lookups(body, "", &inputs, handle, &mut memory, &[]);
                assert!(report.is_clean(), "{:#?}", report.findings);
                for (input, got) in inputs.iter().zip(out) {
                    let dims = size.len();
                    let at = |index: &[i64]| {
                        let mut place = 0;
                        for d in (0..dims).rev() {
                            match walk(mode, normalized, index[d], size[d].into()) {
                                Some(i) => place = place * size[d] as usize + i as usize,
                                None => return -7.5,
                            }
                        }
                        f64::from(values[place])
                    };
                    let x: Vec<f64> = (0..dims)
                        .map(|d| {
                            let x = f64::from(f32::from_bits(input[d]));
                            if normalized {
                                x * f64::from(size[d])
                            } else {
                                x
                            }
                        })
                        .collect();
                    let expected = if linear {
                        let from: Vec<f64> = x
                            .iter()
                            .map(|x| ((x * 256.0).round() - 128.0) / 256.0)
                            .collect();
                        let mut sum = 0.0;
                        for corner in 0..1usize << dims {
                            let upper: Vec<bool> =
                                (0..dims).map(|d| corner >> d & 1 == 1).collect();
                            let mut weight = 1.0;
                            let mut index = Vec::new();
                            for d in 0..dims {
                                let part = from[d] - from[d].floor();
                                weight *= if upper[d] { part } else { 1.0 - part };
                                index.push(from[d].floor() as i64 + i64::from(upper[d]));
                            }
                            sum += weight * at(&index);
                        }
                        sum
                    } else {
                        at(&x.iter().map(|x| x.floor() as i64).collect::<Vec<_>>())
                    };
                    let got = f32::from_bits(got[0]);
                    assert_eq!(
                        got, expected as f32,
                        "{size:?} {mode:?} {linear} {normalized} {x:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn formats_are_read_as_they_are_declared() {
    let bytes: Vec<u8> = vec![
        0x80, 0xff, 0x7f, 0x01, 0x00, 0x3c, 0x00, 0xc0, 5, 6, 7, 8, 9, 10, 11, 12,
    ];
    let f = f32::to_bits;
    let cases = [
        (Texel::U8, 4, false, "u32", [0x80, 0xff, 0x7f, 1]),
        (
            Texel::S8,
            4,
            false,
            "s32",
            [-128i32 as u32, u32::MAX, 0x7f, 1],
        ),
        (
            Texel::U8,
            4,
            true,
            "f32",
            [f(128.0 / 255.0), f(1.0), f(127.0 / 255.0), f(1.0 / 255.0)],
        ),
        (
            Texel::S8,
            4,
            true,
            "f32",
            [f(-1.0), f(-1.0 / 127.0), f(1.0), f(1.0 / 127.0)],
        ),
        (Texel::U16, 2, false, "u32", [0xff80, 0x017f, 0, 1]),
        (Texel::S16, 1, false, "s32", [0xffff_ff80, 0, 0, 1]),
        (
            Texel::U16,
            1,
            true,
            "f32",
            [f(65408.0 / 65535.0), 0, 0, f(1.0)],
        ),
        (Texel::U32, 1, false, "u32", [0x017f_ff80, 0, 0, 1]),
        (
            Texel::S32,
            4,
            false,
            "s32",
            [0x017f_ff80, 0xc000_3c00, 0x0807_0605, 0x0c0b_0a09],
        ),
    ];
    for (texel, channels, unit, result, expected) in cases {
        let mut memory = GlobalMemory::new();
        let address = memory.alloc(16, 256).expect("memory");
        memory.write(address, &bytes).expect("a write");
        let texture = Texture {
            unit,
            ..Texture::new(texel, channels, &[1], address)
        };
        let handle = memory.bind_texture(texture).expect("a texture");
        for coordinate in ["s32", "f32"] {
            let c = if coordinate == "f32" { "%x0" } else { "%c0" };
            let body =
                format!("tex.1d.v4.{result}.{coordinate} {{%d0, %d1, %d2, %d3}}, [%tex, {{{c}}}];");
            let (out, report) = lookups(&body, "", &[[0; 4]], handle, &mut memory, &[]);
            assert!(report.is_clean(), "{:#?}", report.findings);
            assert_eq!(out[0], expected, "{texel:?} {channels} {coordinate}");
        }
    }
    // Halves, and results of halves.
    let mut memory = GlobalMemory::new();
    let address = memory.alloc(16, 256).expect("memory");
    memory.write(address, &bytes[4..8]).expect("a write");
    let handle = memory
        .bind_texture(Texture::new(Texel::F16, 2, &[1], address))
        .expect("a texture");
    let body = "tex.1d.v2.f16x2.f32 {%d0, %d1}, [%tex, {%x0}];";
    let (out, report) = lookups(body, "", &[[0; 4]], handle, &mut memory, &[]);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(out[0][..2], [0xc000_3c00, 0x3c00_0000]);
}

#[test]
fn gathers_offsets_layers_and_buffers() {
    let mut random = Random(3);
    let (mut memory, texture, values) = array(&[6, 4], 0, &mut random);
    let address = texture.address;
    let handle = memory.bind_texture(texture.clone()).expect("a texture");
    let at = |x: usize, y: usize| values[6 * y + x].to_bits();
    let two = |x: f32, y: f32| [x.to_bits(), y.to_bits(), 0, 0];
    // Around (2, 1): texels 1 and 2, rows 0 and 1; 2.4999 is 2.5 with eight fraction bits.
    let body = "tld4.r.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0, %x1}];";
    let (out, report) = lookups(
        body,
        "",
        &[two(2.0, 1.0), two(2.4999, 1.0)],
        handle,
        &mut memory,
        &[],
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(out[0], [at(1, 1), at(2, 1), at(2, 0), at(1, 0)]);
    assert_eq!(out[1], [at(2, 1), at(3, 1), at(3, 0), at(2, 0)]);
    let body = "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}|%q, [%tex, {%x0, %x1}], {3, -1}; selp.b32 %d1, 1, 0, %q;";
    let (out, report) = lookups(body, "", &[two(1.5, 2.5)], handle, &mut memory, &[]);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(out[0][..2], [at(4, 1), 1]);
    // The same memory as an array of 4 layers of 6 texels; the layer is clamped.
    let layers = Texture {
        layers: 4,
        size: vec![6],
        ..texture.clone()
    };
    let layered = memory.bind_texture(layers).expect("a texture");
    let body = "tex.a1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%c0, %x1}];";
    let inputs = [[2, 3.5f32.to_bits(), 0, 0], [9, 0, 0, 0]];
    let (out, report) = lookups(body, "", &inputs, layered, &mut memory, &[]);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!([out[0][0], out[1][0]], [at(3, 2), at(0, 3)]);
    let body = "txq.width.b32 %d0, [%tex]; txq.array_size.b32 %d1, [%tex]; suq.height.b32 %d2, [%tex]; txq.addr_mode_0.b32 %d3, [%tex];";
    let (out, _) = lookups(body, "", &[[0; 4]], layered, &mut memory, &[]);
    assert_eq!(out[0], [6, 4, 0, 3]);
    // One dimension by integers: zeros outside.
    let buffer = memory
        .bind_texture(Texture::new(Texel::F32, 1, &[24], address))
        .expect("a texture");
    let body = "tex.1d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%tex, {%c0}];";
    let inputs = [[5, 0, 0, 0], [24, 0, 0, 0], [u32::MAX, 0, 0, 0]];
    let (out, report) = lookups(body, "", &inputs, buffer, &mut memory, &[]);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!([out[0][0], out[1][0], out[2][0]], [at(5, 0), 0, 0]);
    // By a variable of the module, named and by its address.
    let place = memory.alloc(8, 8).expect("memory");
    memory.write(place, &handle.to_le_bytes()).expect("a write");
    let body = "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [image, {%x0, %x1}];
    mov.u64 %tex, image; tex.2d.v4.f32.f32 {%d1, %d2, %d3, %t}, [%tex, {%x0, %x1}];";
    let declaration = ".global .texref image;";
    let (out, report) = lookups(
        body,
        declaration,
        &[two(3.0, 2.0)],
        0,
        &mut memory,
        &[("image", place)],
    );
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(out[0][..2], [at(3, 2); 2]);
}

#[test]
fn surfaces_read_and_write_bytes() {
    let mut random = Random(5);
    let (mut memory, texture, values) = array(&[8, 4], 32, &mut random);
    let (address, pitch) = (texture.address, texture.pitch);
    let handle = memory.bind_texture(texture).expect("a surface");
    let at = |x: usize, y: usize| values[8 * y + x].to_bits();
    let go = |body: &str, inputs: &[[u32; 4]], memory: &mut GlobalMemory| {
        lookups(body, "", inputs, handle, memory, &[])
    };
    let body = "suld.b.2d.v2.b32.trap {%d0, %d1}, [%tex, {%c0, %c1}];";
    let (out, report) = go(body, &[[16, 2, 0, 0]], &mut memory);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(out[0][..2], [at(4, 2), at(5, 2)]);
    let outside = [[32, 1, 0, 0], [-8i32 as u32, 9, 0, 0]];
    let body =
        "suld.b.2d.b32.zero %d0, [%tex, {%c0, %c1}]; suld.b.2d.b32.clamp %d1, [%tex, {%c0, %c1}];";
    let (out, report) = go(body, &outside, &mut memory);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(out[0][..2], [0, at(7, 1)]);
    assert_eq!(out[1][..2], [0, at(0, 3)]);
    let body =
        "sust.b.2d.b32.zero [%tex, {%c0, %c1}], %c2; suld.b.2d.b32.zero %d0, [%tex, {%c0, %c1}];";
    let (out, report) = go(body, &[[4, 3, 77, 0], [32, 3, 78, 0]], &mut memory);
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!([out[0][0], out[1][0]], [77, 0]);
    assert_eq!(
        memory.read(address + 3 * pitch + 4, 4).expect("a read"),
        77u32.to_le_bytes()
    );
    for (body, input, kind) in [
        (
            "suld.b.2d.b32.trap %d0, [%tex, {%c0, %c1}];",
            [32, 0, 0, 0],
            FindingKind::OutOfBounds,
        ),
        (
            "sust.b.2d.b32.trap [%tex, {%c0, %c1}], %c2;",
            [0, 4, 0, 0],
            FindingKind::OutOfBounds,
        ),
        (
            "suld.b.2d.b32.zero %d0, [%tex, {%c0, %c1}];",
            [2, 0, 0, 0],
            FindingKind::Misaligned,
        ),
        (
            "suld.b.1d.b32.zero %d0, [%tex, {%c0}];",
            [0; 4],
            FindingKind::BadOperand,
        ),
    ] {
        let (_, report) = go(body, &[input], &mut memory);
        assert_eq!(kinds(&report), [kind], "{body}");
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let mut random = Random(1);
    let (mut memory, texture, _) = array(&[8, 4], 0, &mut random);
    let handle = memory.bind_texture(texture.clone()).expect("a texture");
    let far = Texture {
        size: vec![8, 4000],
        ..texture.clone()
    };
    let far = memory.bind_texture(far).expect("a texture");
    let zero = [[0; 4]];
    let below = [[0, 3999.5f32.to_bits(), 0, 0]];
    for (body, handle, inputs, kind, says) in [
        (
            "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0, %x1}];",
            0x1234,
            &zero,
            FindingKind::BadOperand,
            "neither the handle",
        ),
        (
            "tex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0}];",
            handle,
            &zero,
            FindingKind::BadOperand,
            "which is .2d",
        ),
        (
            "tex.2d.v4.u32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0, %x1}];",
            handle,
            &zero,
            FindingKind::BadOperand,
            "the texture gives floating-point",
        ),
        (
            "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%tex, {%x0, %x1}];",
            far,
            &below,
            FindingKind::OutOfBounds,
            "sizes and pitch do not fit",
        ),
    ] {
        let (_, report) = lookups(body, "", inputs, handle, &mut memory, &[]);
        assert_eq!(kinds(&report), [kind], "{body}");
        let message = &report.findings[0].message;
        assert!(message.contains(says), "{message}");
    }
    let refused = |change: &dyn Fn(&mut Texture)| {
        let mut texture = texture.clone();
        change(&mut texture);
        let error = GlobalMemory::new().bind_texture(texture);
        error.expect_err("no texture").to_string()
    };
    assert!(refused(&|t| t.channels = 3).contains("3 channels"));
    assert!(refused(&|t| t.size = vec![]).contains("1 to 3"));
    assert!(refused(&|t| t.pitch = 30).contains("a pitch of 30 bytes for rows of 32"));
    assert!(refused(&|t| t.unit = true).contains("not integers"));
    assert!(refused(&|t| (t.texel, t.linear) = (Texel::U8, true)).contains("linear filter"));
    assert!(refused(&|t| (t.layers, t.size) = (2, vec![8, 2, 2])).contains("three dimensions"));
}
