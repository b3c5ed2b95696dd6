//! Tensor copies of boxes: interleaved maps of every swizzle, and maps without slices to compare with.
//!
//! Each block copies the box at its own corner to shared memory and stores the bytes there. The input of a case is the array and, behind it, five coordinates
//! for each block. Corners lie inside and outside the array.

use ptx_emulator::{TensorElement, TensorInterleave, TensorMap, TensorSwizzle};

use crate::Case;
use crate::numbers::Random;

/// Maps of each kind, and boxes of a map.
const MAPS: usize = 4;
const BOXES: u32 = 16;

/// Elements: name in the manifest, which is that of the driver's constant, type, and bytes.
const ELEMENTS: [(TensorElement, u64); 4] = [
    (TensorElement::U8, 1),
    (TensorElement::F16, 2),
    (TensorElement::Bf16, 2),
    (TensorElement::F32, 4),
];

/// All copies: file, text and launches. A file holds few of them: after a fault on the GPU the rest of the file is left out.
pub(crate) fn all() -> Vec<(String, String, Vec<Case>)> {
    use TensorInterleave as I;
    use TensorSwizzle as S;
    let kinds = [
        (I::None, S::None),
        (I::None, S::Bytes32),
        (I::None, S::Bytes64),
        (I::None, S::Bytes128),
        (I::Bytes16, S::None),
        (I::Bytes16, S::Bytes32),
        (I::Bytes16, S::Bytes64),
        (I::Bytes16, S::Bytes128),
        (I::Bytes32, S::Bytes32),
    ];
    let mut random = Random(0x0bad_cafe_1234_5678);
    let mut files = Vec::new();
    for (interleave, swizzle) in kinds {
        for rank in 3..=5 {
            let module = format!("box.{interleave:?}.{swizzle:?}.{rank}.ptx");
            let mut text = String::from(".version 8.4\n.target sm_90\n.address_size 64\n");
            let mut cases = Vec::new();
            for number in 0..MAPS {
                let element = ELEMENTS[number % ELEMENTS.len()];
                let map = map(rank, interleave, swizzle, element, &mut random);
                let name = format!("box.{interleave:?}.{swizzle:?}.{rank}.{number}");
                let kernel = name.replace('.', "_");
                let (array, each) = sizes(&map, element.1);
                text += &program(&kernel, rank, array, each);
                cases.push(Case {
                    name,
                    module: module.clone(),
                    kernel,
                    grid: BOXES,
                    block: 32,
                    input: input(&map, array, &mut random),
                    out_bytes: (u64::from(BOXES) * each) as usize,
                    rows: Vec::new(),
                    element: "b32",
                    families: &["boxes"],
                    map: Some(map),
                });
            }
            files.push((module, text, cases));
        }
    }
    files
}

/// A random map at address 0.
fn map(
    rank: usize,
    interleave: TensorInterleave,
    swizzle: TensorSwizzle,
    (element, bytes): (TensorElement, u64),
    random: &mut Random,
) -> TensorMap {
    let (row, outer) = match interleave.slice() {
        Some(slice) => (slice, slice),
        // Rows as long as the swizzle, so that there is no gap between them.
        None => (swizzle.span().unwrap_or(64), 48 + 16 * random.below(8)),
    };
    let mut out = TensorMap {
        sizes: vec![outer / bytes],
        box_sizes: vec![(row / bytes) as u32],
        element_strides: vec![1],
        swizzle,
        interleave,
        nan_outside: element != TensorElement::U8 && random.below(2) == 0,
        ..TensorMap::new(element, 0)
    };
    let mut pitch = outer + 32 * random.below(2);
    for d in 1..rank {
        out.strides.push(pitch);
        out.sizes.push(2 + random.below(6));
        pitch = (pitch * out.sizes[d]).next_multiple_of(32);
        // Rows in all a multiple of 8, for the pattern of the widest swizzle to come whole.
        let extent = if d == 1 { 8 } else { 1 + random.below(3) };
        out.box_sizes.push(extent as u32);
        out.element_strides.push(1 + (random.below(4) == 0) as u32);
    }
    out
}

/// Bytes of the array and of a box, which has the elements that the steps along the dimensions leave.
fn sizes(map: &TensorMap, bytes: u64) -> (u64, u64) {
    let last = map.sizes.len() - 1;
    let array = map.strides[last - 1] * map.sizes[last];
    let elements = map.box_sizes.iter().zip(&map.element_strides);
    let elements: u64 = elements.map(|(n, s)| u64::from(n.div_ceil(*s))).product();
    (array.next_multiple_of(256), elements * bytes)
}

/// Random bytes that are finite numbers in every format, and corners from just outside the array on.
fn input(map: &TensorMap, array: u64, random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..array).map(|_| random.bits() as u8 & 0x3f).collect();
    for _ in 0..BOXES {
        for d in 0..5 {
            let corner = match map.sizes.get(d) {
                None => 0,
                // Dimension 0 of slices is one slice.
                Some(_) if d == 0 && map.interleave.slice().is_some() => 0,
                Some(n) => random.below(n + 4) as i32 - 2,
            };
            bytes.extend_from_slice(&corner.to_le_bytes());
        }
    }
    bytes
}

fn program(kernel: &str, rank: usize, array: u64, each: u64) -> String {
    let coordinates: Vec<String> = (0..rank).map(|d| format!("%c{d}")).collect();
    let loads: String = (0..rank)
        .map(|d| format!("    ld.global.b32 %c{d}, [%in+{}];\n", 4 * d))
        .collect();
    format!(
        ".visible .entry {kernel}(.param .u64 in, .param .u64 out, .param .align 64 .b8 map[128])
{{
    .reg .b32 %c<5>, %t, %block, %w, %at;
    .reg .b64 %in, %out, %map;
    .reg .pred %first, %done, %more;
    .shared .align 1024 .b8 box[{each}];
    .shared .align 8 .b64 full;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %t, %tid.x;
    mov.u32 %block, %ctaid.x;
    mad.wide.u32 %in, %block, 20, %in;
    add.u64 %in, %in, {array};
    mad.wide.u32 %out, %block, {each}, %out;
    mad.wide.u32 %out, %t, 4, %out;
{loads}    setp.eq.u32 %first, %t, 0;
    @!%first bra WAIT;
    mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {each};
    cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%map, {{{}}}], [full];
WAIT:
    bar.sync 0;
TRY:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 0;
    @!%done bra TRY;
    mov.u32 %at, box;
    mad.lo.u32 %at, %t, 4, %at;
    mul.lo.u32 %t, %t, 4;
NEXT:
    setp.lt.u32 %more, %t, {each};
    @!%more bra END;
    ld.shared.b32 %w, [%at];
    st.global.b32 [%out], %w;
    add.u32 %at, %at, 128;
    add.u32 %t, %t, 128;
    add.u64 %out, %out, 128;
    bra NEXT;
END:
    ret;
}}
",
        coordinates.join(", ")
    )
}

/// The map for the manifest: the numbers of the driver's constants, then sizes.
pub(crate) fn json(map: &TensorMap) -> String {
    // CU_TENSOR_MAP_DATA_TYPE_UINT8, _FLOAT16, _BFLOAT16 and _FLOAT32.
    let element = match map.element {
        TensorElement::U8 => 0,
        TensorElement::F16 => 6,
        TensorElement::Bf16 => 9,
        _ => 7,
    };
    format!(
        "{{\"element\":{element},\"sizes\":{:?},\"strides\":{:?},\"box\":{:?},\"steps\":{:?},\"interleave\":{},\"swizzle\":{},\"nan\":{}}}",
        map.sizes,
        map.strides,
        map.box_sizes,
        map.element_strides,
        map.interleave as u8,
        map.swizzle as u8,
        u8::from(map.nan_outside)
    )
}
