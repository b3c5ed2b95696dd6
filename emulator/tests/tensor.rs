//! Tensor copies: every byte that a copy moves is compared with one found by counting through the array, element by element.

// PTX is put together piece by piece; indices are those of the formulas.
#![allow(clippy::format_push_string, clippy::needless_range_loop)]

mod common;

use common::{Random, assembles, kernel};
use ptx_emulator::{
    Arg, FindingKind, GlobalMemory, Im2col, Launch, Module, Options, Report, TensorElement,
    TensorInterleave, TensorMap, TensorSwizzle, run,
};

const BYTES: usize = 32768;

/// A kernel that loads (or stores) the box at `coords` of its map, and copies shared memory to `out` (or fills it with the word number times 7 before).
fn text(rank: usize, mode: &str, offsets: usize, store: Option<&str>) -> String {
    let list = |name: &str, n: usize| {
        let all: Vec<_> = (0..n).map(|k| format!("%{name}{k}")).collect();
        all.join(", ")
    };
    let (coords, extra) = (list("c", rank), list("o", offsets));
    let extra = match (offsets, store) {
        (0, _) | (_, Some(_)) => String::new(),
        _ => format!(", {{{extra}}}"),
    };
    let mut loads = String::new();
    for k in 0..5 {
        loads += &format!("ld.param.s32 %c{k}, [coords+{}];\n", 4 * k);
    }
    for k in 0..3 {
        loads += &format!("ld.param.u16 %o{k}, [offsets+{}];\n", 2 * k);
    }
    let body = match store {
        None => format!(
            "@!%first bra WAIT;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta;
    ld.param.u32 %r5, [bytes];
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r5;
    cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes [data], [%map, {{{coords}}}], [bar]{extra};
WAIT:
    bar.sync 0;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %done, [bar], 0;
    @!%done bra AGAIN;
    ld.param.u32 %r6, [extent];
    shl.b32 %r1, %t, 2;
COPY:
    setp.ge.u32 %p0, %r1, %r6;
    @%p0 bra END;
    add.u32 %r2, %r0, %r1;
    ld.shared.u32 %r3, [%r2];
    cvt.u64.u32 %rd1, %r1;
    add.u64 %rd1, %rd1, %out;
    st.global.u32 [%rd1], %r3;
    add.u32 %r1, %r1, 512;
    bra COPY;
END:"
        ),
        Some(op) => format!(
            "ld.param.u32 %r6, [extent];
    shl.b32 %r1, %t, 2;
FILL:
    setp.ge.u32 %p0, %r1, %r6;
    @%p0 bra FILLED;
    add.u32 %r2, %r0, %r1;
    mul.lo.u32 %r3, %r1, 7;
    st.shared.u32 [%r2], %r3;
    add.u32 %r1, %r1, 512;
    bra FILL;
FILLED:
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%first bra END;
    {op}.tensor.{rank}d.global.shared::cta{mode}.bulk_group [%map, {{{coords}}}], [data];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:"
        ),
    };
    kernel(
        ".param .u64 out, .param .align 64 .b8 map[128], .param .align 4 .b8 coords[20], .param .align 4 .b8 offsets[8], .param .u32 bytes, .param .u32 extent",
        &format!(
            ".reg .b32 %r<10>, %t, %c<5>;
    .reg .b64 %rd<5>, %out, %map;
    .reg .b16 %o<3>;
    .reg .pred %p<3>, %first, %done;
    .shared .align 1024 .b8 data[{BYTES}];
    .shared .align 8 .b64 bar;
    ld.param.u64 %out, [out];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    {loads}
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %r0, data;
    {body}"
        ),
    )
}

struct Case {
    map: TensorMap,
    coords: Vec<i32>,
    offsets: Vec<u16>,
    /// Bytes that the copy counts.
    bytes: u32,
    /// Bytes of shared memory that it covers.
    extent: u32,
}

impl Case {
    fn run(&self, text: &str, memory: &mut GlobalMemory, out: u64) -> Report {
        let module = Module::parse_strict(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut coords: Vec<u8> = self.coords.iter().flat_map(|c| c.to_le_bytes()).collect();
        coords.resize(20, 0);
        let mut offsets: Vec<u8> = self.offsets.iter().flat_map(|c| c.to_le_bytes()).collect();
        offsets.resize(8, 0);
        let launch = Launch {
            block: [128, 1, 1],
            args: vec![
                Arg::Ptr(out),
                Arg::Bytes(self.map.encode().expect("a correct map").to_vec()),
                Arg::Bytes(coords),
                Arg::Bytes(offsets),
                Arg::U32(self.bytes),
                Arg::U32(self.extent),
            ],
            ..Launch::default()
        };
        run(&module, "k", &launch, memory, &Options::default()).expect("a launch")
    }
}

/// An array of random bytes and the bytes' address.
fn array(memory: &mut GlobalMemory, random: &mut Random, bytes: u64) -> (u64, Vec<u8>) {
    let address = memory.alloc(bytes, 256).expect("memory");
    let data: Vec<u8> = (0..bytes).map(|_| random.bits() as u8).collect();
    memory.write(address, &data).expect("a write");
    (address, data)
}

/// A random tiled map of `rank` dimensions, and strides with gaps.
fn random_map(random: &mut Random, rank: usize, element: TensorElement) -> TensorMap {
    let size = element.bytes();
    let swizzles = [
        TensorSwizzle::None,
        TensorSwizzle::Bytes32,
        TensorSwizzle::Bytes64,
        TensorSwizzle::Bytes128,
    ];
    let mut swizzle = swizzles[random.below(4) as usize];
    let interleave = match random.below(4) {
        0 if rank > 2 => TensorInterleave::Bytes16,
        1 if rank > 2 => TensorInterleave::Bytes32,
        _ => TensorInterleave::None,
    };
    let most = swizzle.span().unwrap_or(128);
    let mut inner = 16 * (1 + random.below(most / 16)) / size;
    let mut sizes = vec![1 + random.below(2 * inner + 8)];
    if let Some(slice) = interleave.slice() {
        // Dimension 0 is a slice, here and in the box.
        inner = slice / size;
        sizes = vec![inner];
        if slice == 32 {
            swizzle = TensorSwizzle::Bytes32;
        }
    }
    let grain = interleave.slice().unwrap_or(16);
    let mut strides = Vec::new();
    let mut box_sizes = vec![inner as u32];
    let mut element_strides = vec![1];
    let mut pitch = (sizes[0] * size).next_multiple_of(grain) + grain * random.below(2);
    for d in 1..rank {
        strides.push(pitch);
        sizes.push(1 + random.below(6));
        pitch = (pitch * sizes[d]).next_multiple_of(16);
        box_sizes.push(1 + random.below(if d < 3 { 5 } else { 2 }) as u32);
        element_strides.push(1 + random.below(2) as u32);
    }
    TensorMap {
        sizes,
        strides,
        box_sizes,
        element_strides,
        swizzle,
        interleave,
        nan_outside: random.below(2) == 0
            && !matches!(element, TensorElement::U8 | TensorElement::U32),
        ..TensorMap::new(element, 0)
    }
}

/// For each element of the box: where it is in shared memory, and in the array's bytes if it is in the array, whose rows have `width` elements.
fn elements(map: &TensorMap, coords: &[i32], width: u64) -> Vec<(u32, Option<u64>)> {
    let rank = map.sizes.len();
    let count = |d: usize| u64::from(map.box_sizes[d].div_ceil(map.element_strides[d]));
    let size = map.element.bytes();
    let total: u64 = (0..rank).map(count).product();
    let pitch = match map.interleave {
        TensorInterleave::None => map.swizzle.span().unwrap_or(count(0) * size),
        _ => count(0) * size,
    };
    let mut all = Vec::new();
    for n in 0..total {
        let (mut rest, mut at, mut inside, mut row, mut scale) = (n, 0i64, true, 0u64, 1u64);
        let mut column = 0;
        for d in 0..rank {
            let i = rest % count(d);
            rest /= count(d);
            let c = i64::from(coords[d]) + (i * u64::from(map.element_strides[d])) as i64;
            let extent = if d == 0 { width } else { map.sizes[d] };
            inside &= c >= 0 && c < extent as i64;
            let stride = if d == 0 { size } else { map.strides[d - 1] };
            at += c * stride as i64;
            if d == 0 {
                column = i;
            } else {
                row += i * scale;
                scale *= count(d);
            }
        }
        let linear = row * pitch + column * size;
        // The swizzles as the ISA shows them: 16-byte chunk j of a row of 128 bytes goes to chunk j xor (row mod 8), and so on.
        let (chunk, line) = (linear / 16 % 8, linear / 128);
        let chunk = match map.swizzle {
            TensorSwizzle::Bytes128 => chunk ^ (line % 8),
            TensorSwizzle::Bytes64 => chunk ^ (line % 4),
            TensorSwizzle::Bytes32 => chunk ^ (line % 2),
            _ => chunk,
        };
        let place = line * 128 + chunk * 16 + linear % 16;
        all.push((place as u32, inside.then_some(at as u64)));
    }
    all
}

fn words(memory: &GlobalMemory, at: u64, bytes: usize) -> Vec<u8> {
    memory.read(at, bytes).expect("a read")
}

const TYPES: [TensorElement; 6] = [
    TensorElement::U8,
    TensorElement::F16,
    TensorElement::Bf16,
    TensorElement::U32,
    TensorElement::F32,
    TensorElement::F64,
];

/// Moves a box back to where a piece of 16 bytes of a row begins.
fn whole_pieces(coords: &mut [i32], element: TensorElement) {
    let piece = 16 / element.bytes() as i32;
    coords[0] = coords[0].div_euclid(piece) * piece;
}

#[test]
fn tiles_of_one_to_five_dimensions_are_loaded() {
    let mut random = Random(11);
    for round in 0..120 {
        let rank = 1 + round % 5;
        let element = TYPES[random.below(6) as usize];
        let mut map = random_map(&mut random, rank, element);
        let mut memory = GlobalMemory::new();
        let bytes = (0..rank).fold(map.element.bytes(), |n, d| match d {
            0 => map.sizes[0] * n,
            d => map.strides[d - 1] * map.sizes[d],
        });
        let (address, data) = array(&mut memory, &mut random, bytes.next_multiple_of(16));
        map.address = address;
        let mut coords: Vec<i32> = map
            .sizes
            .iter()
            .map(|n| random.below(n + 4) as i32 - 3)
            .collect();
        whole_pieces(&mut coords, element);
        let expected = elements(&map, &coords, map.sizes[0]);
        let size = element.bytes() as usize;
        let row = u64::from(map.box_sizes[0]) * size as u64;
        let pitch = match map.interleave {
            TensorInterleave::None => map.swizzle.span().unwrap_or(row),
            _ => row,
        };
        let counted = (expected.len() * size) as u32;
        let rows = u64::from(counted) / (u64::from(map.box_sizes[0]) * size as u64);
        let full = pitch == u64::from(map.box_sizes[0]) * size as u64;
        let out = memory.alloc(BYTES as u64, 256).expect("memory");
        let case = Case {
            coords,
            offsets: vec![],
            bytes: counted,
            // What a row narrower than the swizzle leaves out stays undefined: it is not read.
            extent: if full { (rows * pitch) as u32 } else { 0 },
            map,
        };
        let text = text(rank, ["", ".tile"][round % 2], 0, None);
        if round < 5 {
            assembles(&format!("tile{rank}"), &text);
        }
        let report = case.run(&text, &mut memory, out);
        assert!(report.is_clean(), "{:?}\n{:#?}", case.map, report.findings);
        if !full {
            continue;
        }
        let got = words(&memory, out, BYTES);
        let nan: &[u8] = match element {
            TensorElement::F16 | TensorElement::Bf16 => &[0xff, 0x7f],
            TensorElement::F32 => &[0xff, 0xff, 0xff, 0x7f],
            _ => &[255, 255, 255, 255, 255, 255, 255, 0x7f],
        };
        for (place, from) in expected {
            let place = place as usize;
            let want = match from {
                Some(at) => &data[at as usize..at as usize + size],
                None if case.map.nan_outside => nan,
                None => &[0; 8][..size],
            };
            assert_eq!(&got[place..place + size], want, "{:?} at {place}", case.map);
        }
    }
}

#[test]
fn tiles_are_stored_where_the_array_is() {
    let mut random = Random(12);
    let mut edges = 0;
    for round in 0..60 {
        let rank = 1 + round % 5;
        let element = TYPES[random.below(6) as usize];
        let mut map = random_map(&mut random, rank, element);
        let mut memory = GlobalMemory::new();
        let bytes = (0..rank).fold(map.element.bytes(), |n, d| match d {
            0 => map.sizes[0] * n,
            d => map.strides[d - 1] * map.sizes[d],
        });
        let (address, mut data) = array(&mut memory, &mut random, bytes.next_multiple_of(16));
        map.address = address;
        let mut coords: Vec<i32> = map
            .sizes
            .iter()
            .map(|n| random.below(n + 2) as i32)
            .collect();
        whole_pieces(&mut coords, element);
        // Chunks of 16 bytes are stored whole if they begin in the array, and the box's row does.
        let width = match coords[0] as u64 {
            x if x < map.sizes[0] => map.sizes[0].next_multiple_of(16 / element.bytes()),
            _ => map.sizes[0],
        };
        let stored = |width| {
            let all = elements(&map, &coords, width);
            all.iter().filter(|e| e.1.is_some()).count()
        };
        let crossed = stored(width) > stored(map.sizes[0]);
        edges += usize::from(crossed);
        let all = elements(&map, &coords, width);
        let size = element.bytes() as usize;
        let case = Case {
            coords,
            offsets: vec![],
            bytes: 0,
            extent: BYTES as u32,
            map,
        };
        let text = text(rank, ["", ".tile"][round % 2], 0, Some("cp.async.bulk"));
        let report = case.run(&text, &mut memory, address);
        let found: Vec<_> = report.findings.iter().map(|f| f.kind).collect();
        let expected: &[_] = if crossed {
            &[FindingKind::TensorEdge]
        } else {
            &[]
        };
        assert_eq!(found, expected, "{:?} at {:?}", case.map, case.coords);
        for (place, to) in all {
            let Some(to) = to else { continue };
            for k in 0..size {
                let byte = place as usize + k;
                data[to as usize + k] = ((byte as u32 & !3) * 7).to_le_bytes()[byte % 4];
            }
        }
        assert_eq!(words(&memory, address, data.len()), data, "{:?}", case.map);
    }
    assert!((10..50).contains(&edges), "{edges} stores cross the extent");
}

#[test]
fn reductions_of_tiles() {
    let mut memory = GlobalMemory::new();
    let address = memory.alloc(4 * 64, 256).expect("memory");
    let old: Vec<u8> = (0..64u32).flat_map(|x| (1000 * x).to_le_bytes()).collect();
    memory.write(address, &old).expect("a write");
    let case = Case {
        map: TensorMap {
            sizes: vec![8, 8],
            strides: vec![32],
            box_sizes: vec![4, 4],
            ..TensorMap::new(TensorElement::U32, address)
        },
        coords: vec![4, 2],
        offsets: vec![],
        bytes: 0,
        extent: 64,
    };
    let text = text(2, ".tile", 0, Some("cp.reduce.async.bulk")).replace(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
    );
    assembles("reduction", &text);
    let report = case.run(&text, &mut memory, address);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let got = words(&memory, address, 256);
    for (i, word) in got.as_chunks::<4>().0.iter().enumerate() {
        let (row, column) = (i / 8, i % 8);
        let inside = (2..6).contains(&row) && column >= 4;
        let added = if inside {
            28 * (4 * (row - 2) + column - 4)
        } else {
            0
        };
        assert_eq!(u32::from_le_bytes(*word) as usize, 1000 * i + added);
    }
}

/// The im2col boxes of the ISA's examples: a convolution's patches, found by walking over its output positions.
#[test]
fn im2col_gathers_the_patches_of_a_convolution() {
    let mut random = Random(13);
    // 3×3 filter with padding 1, and the same without padding; strides 1 and 2.
    for (padding, stride, dims) in [
        (1i64, 1i64, 2usize),
        (0, 1, 2),
        (1, 2, 2),
        (1, 1, 1),
        (0, 1, 3),
    ] {
        let (c, w, h, n) = (16u64, 7i64, 6i64, 3i64);
        let mut sizes = vec![c];
        let extents = [w, h, 4];
        sizes.extend(extents[..dims].iter().map(|x| *x as u64));
        sizes.push(n as u64);
        let mut strides = vec![2 * c];
        for d in 1..=dims {
            strides.push(strides[d - 1] * sizes[d]);
        }
        let mut memory = GlobalMemory::new();
        let total = strides[dims] * n as u64;
        let (address, data) = array(&mut memory, &mut random, total);
        let (lower, upper) = (-padding, padding - 2);
        let map = TensorMap {
            sizes: sizes.clone(),
            strides: strides.clone(),
            box_sizes: vec![],
            element_strides: {
                let mut v = vec![1];
                v.extend(vec![stride as u32; dims]);
                v.push(1);
                v
            },
            im2col: Some(Im2col {
                lower: vec![lower as i16; dims],
                upper: vec![upper as i16; dims],
                channels: 8,
                pixels: 20,
            }),
            ..TensorMap::new(TensorElement::F16, address)
        };
        // All positions of the filter, in the order in which a convolution has its outputs.
        let mut positions: Vec<[i64; 4]> = Vec::new();
        let steps = |d: usize| {
            let last = extents[d] - 1 + upper;
            (0..)
                .map(move |k| lower + k * stride)
                .take_while(move |x| *x <= last)
        };
        for image in 0..n {
            let third: Vec<i64> = if dims > 2 {
                steps(2).collect()
            } else {
                vec![0]
            };
            for z in third {
                let second: Vec<i64> = if dims > 1 {
                    steps(1).collect()
                } else {
                    vec![0]
                };
                for y in second {
                    positions.extend(steps(0).map(|x| [x, y, z, image]));
                }
            }
        }
        let first = 5;
        let start = positions[first];
        let mut coords = vec![8];
        coords.extend(start[..dims].iter().map(|x| *x as i32));
        coords.push(start[3] as i32);
        let tap = [2i64, 1, 0];
        let bytes = 20 * 16;
        let out = memory.alloc(BYTES as u64, 256).expect("memory");
        let case = Case {
            map,
            coords,
            offsets: tap[..dims].iter().map(|x| *x as u16).collect(),
            bytes,
            extent: bytes,
        };
        let text = text(dims + 2, ".im2col", dims, None);
        assembles(&format!("im2col{dims}"), &text);
        let report = case.run(&text, &mut memory, out);
        assert!(report.is_clean(), "{:?}\n{:#?}", case.map, report.findings);
        let got = words(&memory, out, bytes as usize);
        for pixel in 0..20 {
            let p = positions.get(first + pixel);
            let inside =
                p.filter(|p| (0..dims).all(|d| (0..extents[d]).contains(&(p[d] + tap[d]))));
            let want = match inside {
                Some(p) => {
                    let mut at = p[3] * strides[dims] as i64;
                    for d in 0..dims {
                        at += (p[d] + tap[d]) * strides[d] as i64;
                    }
                    let at = at as usize + 16;
                    data[at..at + 16].to_vec()
                }
                None => vec![0; 16],
            };
            assert_eq!(
                got[16 * pixel..16 * pixel + 16],
                want,
                "pixel {pixel} of {:?}",
                case.map
            );
        }
    }
}

#[test]
fn wrong_maps_and_copies_are_explained() {
    let mut memory = GlobalMemory::new();
    let address = memory.alloc(4096, 256).expect("memory");
    let good = TensorMap {
        sizes: vec![32, 32],
        strides: vec![64],
        box_sizes: vec![32, 8],
        ..TensorMap::new(TensorElement::F16, address)
    };
    let check = |map: TensorMap,
                 rank: usize,
                 store: bool,
                 x: i32,
                 kind,
                 text_: &str,
                 memory: &mut GlobalMemory| {
        let case = Case {
            map,
            coords: vec![x, 0, 0, 0, 0],
            offsets: vec![],
            bytes: 512,
            extent: if store { 512 } else { 0 },
        };
        let text = text(rank, "", 0, store.then_some("cp.async.bulk"));
        let report = case.run(&text, memory, address);
        let found = report.findings.iter().find(|f| f.kind == kind);
        let found = found.unwrap_or_else(|| panic!("{text_}: {:#?}", report.findings));
        assert!(found.message.contains(text_), "{found}");
    };
    let tensor = FindingKind::TensorMap;
    check(
        good.clone(),
        3,
        false,
        0,
        tensor,
        "3 dimensions with a tensor map of 2",
        &mut memory,
    );
    check(
        good.clone(),
        2,
        true,
        -1,
        tensor,
        "not negative",
        &mut memory,
    );
    for store in [false, true] {
        for x in [1, 7, 12] {
            check(
                good.clone(),
                2,
                store,
                x,
                FindingKind::Misaligned,
                "it is to be a multiple of 16 bytes",
                &mut memory,
            );
        }
    }
    let mut short = good.clone();
    short.sizes[1] = 100;
    short.box_sizes[1] = 100;
    check(
        short,
        2,
        false,
        0,
        FindingKind::OutOfBounds,
        "of an allocation of 4096 bytes",
        &mut memory,
    );
    let mut huge = good.clone();
    huge.box_sizes[1] = 256;
    huge.sizes.extend([9, 9, 9]);
    huge.strides.extend([2048; 3]);
    huge.box_sizes.extend([256; 3]);
    check(
        huge,
        5,
        false,
        0,
        FindingKind::OutOfBounds,
        "a box of 274877906944 bytes",
        &mut memory,
    );
    let mut long = good;
    long.box_sizes[1] = 10;
    check(
        long,
        2,
        false,
        0,
        FindingKind::TransactionCount,
        "128 bytes more",
        &mut memory,
    );
}

#[test]
fn maps_are_changed_on_the_device() {
    // The map has another address, size, stride and box; the kernel changes a copy in shared memory and publishes it in global memory.
    let text = kernel(
        ".param .u64 out, .param .align 64 .b8 map[128], .param .u64 in",
        ".reg .b32 %r<10>, %t; .reg .b64 %rd<10>, %out, %in; .reg .pred %p0, %done;
    .shared .align 128 .b8 data[1024];
    .shared .align 128 .b8 own[128];
    .shared .align 8 .b64 bar;
    ld.param.u64 %out, [out];
    ld.param.u64 %in, [in];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p0, %t, 0;
    mov.u32 %r0, own;
    mad.lo.u32 %r0, %t, 4, %r0;
    mov.b64 %rd0, map;
    cvt.u64.u32 %rd1, %t;
    shl.b64 %rd1, %rd1, 2;
    add.u64 %rd0, %rd0, %rd1;
    ld.param.b32 %r1, [%rd0];
    st.shared.b32 [%r0], %r1;
    bar.warp.sync 0xffffffff;
    mov.u64 %rd2, own;
    mov.u64 %rd3, 64;
    mov.u32 %r2, 32;
    mov.u32 %r3, 8;
    @%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd2], %in;
    @%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd2], 0, %r2;
    @%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd2], 1, %r2;
    @%p0 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd2], 0, %rd3;
    @%p0 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd2], 0, %r2;
    @%p0 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd2], 1, %r3;
    @%p0 tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd2], 1;
    @%p0 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%rd2], 2;
    bar.warp.sync 0xffffffff;
    add.u64 %rd4, %out, 1024;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd4], [%rd2], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;
    @!%p0 bra WAIT;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
    mov.u32 %r4, 0;
    mov.u32 %r5, 3;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%rd4, {%r4, %r5}], [bar];
WAIT:
    bar.warp.sync 0xffffffff;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %done, [bar], 0;
    @!%done bra AGAIN;
    mov.u32 %r6, data;
    mad.lo.u32 %r6, %t, 16, %r6;
    ld.shared.v4.b32 {%r1, %r7, %r8, %r9}, [%r6];
    mad.wide.u32 %rd5, %t, 16, %out;
    st.global.v4.b32 [%rd5], {%r1, %r7, %r8, %r9};",
    );
    assembles("replace", &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}"));
    let mut memory = GlobalMemory::new();
    let (out, input) = (
        memory.alloc(2048, 256).expect("memory"),
        memory.alloc(2048, 256).expect("memory"),
    );
    let data: Vec<u8> = (0..1024u16).flat_map(u16::to_le_bytes).collect();
    memory.write(input, &data).expect("a write");
    let map = TensorMap {
        sizes: vec![16, 1],
        strides: vec![32],
        box_sizes: vec![16, 1],
        ..TensorMap::new(TensorElement::F16, out)
    };
    let launch = Launch {
        args: vec![
            Arg::Ptr(out),
            Arg::Bytes(map.encode().expect("a correct map").to_vec()),
            Arg::Ptr(input),
        ],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert!(report.is_clean(), "{:#?}", report.findings);
    let got = memory.read(out, 512).expect("a read");
    for (place, x) in got.as_chunks::<2>().0.iter().enumerate() {
        // 64 bytes a row, 64-byte swizzle: chunk c of 128-byte line l holds chunk c xor (l mod 4).
        let (line, chunk, within) = (place / 64, place / 8 % 8, place % 8);
        let linear = line * 64 + (chunk ^ (line % 4)) * 8 + within;
        assert_eq!(
            usize::from(u16::from_le_bytes(*x)),
            3 * 32 + linear,
            "{place}"
        );
    }
    let bad = text.replace(
        "elemtype.shared::cta.b1024.b32 [%rd2], 1;",
        "elemtype.shared::cta.b1024.b32 [%rd2], 13;",
    );
    let module = Module::parse_strict(&bad).unwrap_or_else(|e| panic!("{e}"));
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert_eq!(
        report.findings[0].kind,
        FindingKind::TensorMap,
        "{:#?}",
        report.findings
    );
}
