//! Random and mutated expressions: always a value or an error with a good span, never a panic, and a layout's text reads
//! back as the same layout.
//!
//! A short, seeded run is a test; a long one is the same with more rounds:
//!
//! ```sh
//! TILEWRIGHT_FUZZ_ROUNDS=5000000 TILEWRIGHT_FUZZ_SEED=7 cargo test --release -p tilewright-cli --test fuzz_expressions
//! ```
//!
//! `fuzz/` has the same target for `cargo fuzz`, where a nightly compiler is at hand.

#[path = "../../workbench/src/calculator/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the command uses the rest")]
mod calculator;

use calculator::{Value, evaluate, to_json};

/// Expressions that reach into every part of the language.
const SEEDS: &[&str] = &[
    "(4,(2,2)):(2,(1,8)) o 4:2",
    "let a = Sw<3,4,3> o (8,64):(64,1); a(3,_) == slice((3,_), a)",
    "zipped_divide((8,6):(1,8), (4,_))",
    "composition((8,6):(1,8), <4:2, _>)",
    "logical_divide((10,(4,6)):(1,(10,40)), (4:1,(2,3:2)))",
    "blocked_product((2,5):(5,1),(3,4):(1,3))(1,7)",
    "raked_product(Sw<2,0,3> o (4,8):(8,1), (2,2):(2,1))",
    "tile_to_shape(Sw<3,4,3> o (8,64):(64,1), (128,64), (2,1))",
    "complement((2,2):(1,6), 24), 1",
    "left_inverse((4,2):(1,5))(8) + right_inverse((4,2):(2,1))(3) * 2 - 7 % 3",
    "inverse(Sw<2,0,2> o (4,4):(4,1))(7)",
    "((8,64):(2*ld+n-3,1))(3,4) == 6*ld + 3*n - 5",
    "(8,64):(ld,1) o (4,2):(2,16)",
    "make_identity_layout((4,8)) o (2,16):(16,1)",
    "to_layout(matrix(Sw<2,0,2> o (4,4):(4,1)))",
    "recast(Sw<3,4,3> o (8,128):(128,1), 8, 16)",
    "upcast(downcast((4,2):(1,4), 4), 2)",
    "max_common_layout((4,8):(8,1),(4,8):(16,1))",
    "is_injective((2,3,4):(5,7,11)) == is_bijective(9:-1)",
    "coalesce(((2,2),(2,3)):((1,2),(4,8)), (1,1))",
    "make_ordered_layout((3,(4,5)), (2,(3,1)))",
    "idx2crd(16,(3,(2,3)))",
    "crd2crd((1,2),(4,6),(3,(2,4)))",
    "ceil_div((12,32),32) != shape_div((12,32),24)",
    "elem_less((1,2),(3,4)), colex_less((1,(2,3)),(1,(2,4)))",
    "preimage((2,2,2):(9223372036854775,3,1), 4)",
    "is_surjective_onto(Sw<1,0,1> o 16 o (4,3):(3,1), 12)",
    "domain_distribute((15,14), 6)",
    "cosize(Sw<2,0,-2> o -9 o (9223372036854775,3):(-1,2))",
    "max_alignment((8,4):(1,20)) <= gcd(12, 18)",
    "nullspace((4,3,2):(1,0,4))",
    "get((4,(8,2)):(1,(4,64)), 1, 0)",
    "-9223372036854775808 / -1",
    "local_tile((8,6):(1,8), (4,3), (1,_)) == local_partition((8,6):(1,8), (4,2):(1,4), 5)",
    "thread_partition((8,8):(8,1), (4,4), ((2,2),4):((1,4),1), 3)",
    "partition_c(mma.m16n8k16, (1,1,1), (16,8):(8,1), 5)",
    "partition_s(ldmatrix.x4, 32:1, (1,8):(1,1), (16,16):(16,1), 7)",
    "thrfrg_a(mma.m16n8k8.f32.f16, (2,2,1):(1,2,0), (64,32):(32,1))",
    "retile(ldmatrix.x2, 32, 8, (2,2,3):(1,2,4))",
    "make_layout(make_shape(_4{}, Int<8>{}), make_stride(_1{}, ld))",
    "Layout<Shape<_4,Shape<_2,_4>>, Stride<_1,Stride<_4,_8>>>{}",
    "ComposedLayout(Swizzle(3,4,3),0,Layout((8, 64),(64, 1)))",
    "cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))",
    "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
    "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
    "!ttg.memdesc<64x128xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #smem>",
    "tensor<32x32xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>>",
    "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
    "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>",
    "- register=1 -> (0, 1)\n   register=2 -> (8, 0)\n - warp is a size 1 dimension\nwhere out dims are: [dim0 (size 16), dim1 (size 2)]",
];

/// Pieces that mutations insert.
const PIECES: &[&str] = &[
    "(",
    ")",
    ",",
    ":",
    " o ",
    "_",
    "<",
    ">",
    "=",
    "==",
    "let x = ",
    "; ",
    "x",
    "+",
    "-",
    "*",
    "/",
    "%",
    "0",
    "1",
    "2",
    "3",
    "7",
    "12",
    "64",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "Sw<3,4,3>",
    "Sw<1,0,-1>",
    "(4,8):(8,1)",
    "(2,(3,1)):(1,(2,0))",
    "4:1",
    "8:-1",
    "6:0",
    "ld",
    "2*ld",
    "size(",
    "cosize(",
    "coalesce(",
    "composition(",
    "complement(",
    "right_inverse(",
    "left_inverse(",
    "inverse(",
    "logical_divide(",
    "flat_divide(",
    "logical_product(",
    "blocked_product(",
    "upcast(",
    "recast(",
    "equal(",
    "is_injective(",
    "slice(",
    "matrix(",
    "∘",
    "é",
    "\u{0}",
    "\n",
    "((((((((",
    "))))))))",
];

/// A small generator, so that a seed names a run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A char boundary of `text`.
fn boundary(random: &mut Random, text: &str) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn mutate(random: &mut Random, text: &mut String) {
    let (a, b) = (boundary(random, text), boundary(random, text));
    let (a, b) = (a.min(b), a.max(b));
    match random.below(6) {
        0 => {
            let end = a + text[a..b]
                .chars()
                .take(4)
                .map(char::len_utf8)
                .sum::<usize>();
            text.replace_range(a..end, "");
        }
        1 => {
            let piece = text[a..b].to_owned();
            let at = boundary(random, text);
            text.insert_str(at, &piece);
        }
        2 => {
            let other = SEEDS[random.below(SEEDS.len())];
            let (c, d) = (boundary(random, other), boundary(random, other));
            text.insert_str(a, &other[c.min(d)..c.max(d)]);
        }
        3 => {
            // A number for a number.
            if let Some(at) = text[a..].find(|c: char| c.is_ascii_digit()) {
                let start = a + at;
                let len = text[start..].bytes().take_while(u8::is_ascii_digit).count();
                let number = PIECES[18 + random.below(9)];
                text.replace_range(start..start + len, number);
            }
        }
        _ => text.insert_str(a, PIECES[random.below(PIECES.len())]),
    }
}

/// Evaluates, and checks what must hold of any answer.
fn check(text: &str) {
    match evaluate(text) {
        Ok(value) => {
            let _ = to_json(&value).to_string();
            let printed = value.to_string();
            if matches!(
                value,
                Value::Layout(_) | Value::Int(_) | Value::Affine(_) | Value::Swizzle(_)
            ) {
                assert_eq!(
                    evaluate(&printed),
                    Ok(value),
                    "{text:?} printed as {printed:?}"
                );
            }
        }
        Err(error) => {
            let (start, end) = error.span;
            assert!(start <= end && end <= text.len(), "{text:?}: {error:?}");
            assert!(
                text.is_char_boundary(start) && text.is_char_boundary(end),
                "{text:?}: {error:?}"
            );
            assert!(!error.code.is_empty() && !error.message.is_empty());
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[test]
fn seeds_themselves_are_answered() {
    for seed in SEEDS {
        check(seed);
    }
}

#[test]
fn mutated_expressions_never_panic() {
    let rounds = setting("TILEWRIGHT_FUZZ_ROUNDS", 20_000);
    let mut random =
        Random(setting("TILEWRIGHT_FUZZ_SEED", 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut text = String::new();
    for round in 0..rounds {
        if round % 8 == 0 || text.len() > 400 {
            text.clear();
            text.push_str(SEEDS[random.below(SEEDS.len())]);
        }
        mutate(&mut random, &mut text);
        check(&text);
    }
}
