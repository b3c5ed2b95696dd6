//! Layouts as other libraries write them: what each form means, that what is written reads back, and where each mistake is.

use proptest::prelude::*;
use tilewright_workbench::{NOTATIONS, Notation, evaluate};

fn read(text: &str) -> String {
    match evaluate(text) {
        Ok(value) => value.to_string(),
        Err(error) => panic!("{text}: {}", error.text()),
    }
}

fn written(text: &str, notation: &str) -> Result<String, String> {
    let notation = Notation::named(notation).expect("a notation");
    let value = evaluate(text).expect("a layout");
    value
        .written(&notation)
        .map_err(|error| error.code().to_owned())
}

#[test]
fn the_forms_of_pycute_and_cute_are_read() {
    for (text, layout) in [
        // pycute: its str and its repr.
        ("(4, 8):(1, 4)", "(4,8):(1,4)"),
        ("(4,):(1,)", "(4):(1)"),
        ("Layout((4, 8),(1, 4))", "(4,8):(1,4)"),
        ("Layout(8,2)", "8:2"),
        ("pycute.Layout((4, (2, 2)))", "(4,(2,2)):(1,(4,8))"),
        (
            "ComposedLayout(Swizzle(3,4,3),0,Layout((8, 64),(64, 1)))",
            "Sw<3,4,3> o (8,64):(64,1)",
        ),
        (
            "SW_3_4_3 o 0 o (8, 64):(64, 1)",
            "Sw<3,4,3> o (8,64):(64,1)",
        ),
        ("((8, 4):(4, 1))(None, 2)", "2 o (8):(4)"),
        // CuTe C++: source and printed form.
        (
            "make_layout(make_shape(_4{}, Int<8>{}), make_stride(_1{}, ld))",
            "(4,8):(1,ld)",
        ),
        ("make_layout(make_shape(Int<4>{}))", "(4):(1)"),
        (
            "cute::make_layout(cute::make_shape(cute::_4{}, 8), cute::LayoutRight{})",
            "(4,8):(8,1)",
        ),
        (
            "make_layout(make_shape(_4{}, C<8>{}), GenColMajor{})",
            "(4,8):(1,4)",
        ),
        (
            "Layout<Shape<_4,Shape<_2,_4>>, Stride<_1,Stride<_4,_8>>>{}",
            "(4,(2,4)):(1,(4,8))",
        ),
        ("Layout<Shape<_4,_8>>{}", "(4,8):(1,4)"),
        (
            "composition(Swizzle<3,4,3>{}, Int<0>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})",
            "Sw<3,4,3> o (8,64):(64,1)",
        ),
        (
            "Sw<3,4,3> o _0 o (_8,_64):(_64,_1)",
            "Sw<3,4,3> o (8,64):(64,1)",
        ),
        ("(_4,_8):(_-1,_4)", "(4,8):(-1,4)"),
        // A swizzle in front of a pointer counts bytes.
        (
            "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
            "Sw<3,3,3> o (8,64):(64,1)",
        ),
        (
            "Sw<3,4,3> o smem_ptr[32b](0x7f0400) o (8,32):(32,1)",
            "Sw<3,2,3> o (8,32):(32,1)",
        ),
        (
            "Sw<2,4,3>_smem_ptr[8b](0x7f0400) o (8,64):(64,1)",
            "Sw<2,4,3> o (8,64):(64,1)",
        ),
        ("gmem_ptr[32b](0x7f0400) o (4,8):(8,1)", "(4,8):(8,1)"),
        // CuTe DSL: source and printed form.
        ("cute.make_layout((4, 8), stride=(1, 4))", "(4,8):(1,4)"),
        ("cute.make_layout((4, 8))", "(4,8):(1,4)"),
        (
            "cute.make_ordered_layout((4, 8), order=(1, 0))",
            "(4,8):(8,1)",
        ),
        (
            "cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))",
            "Sw<3,4,3> o (8,64):(64,1)",
        ),
        (
            "S<3,4,3> o 0 o ((8,8),(64,2)):((64,512),(1,4096))",
            "Sw<3,4,3> o ((8,8),(64,2)):((64,512),(1,4096))",
        ),
        // A stride may have the names that types have elsewhere.
        ("(4,8):(C,1)", "(4,8):(C,1)"),
    ] {
        assert_eq!(read(text), layout, "{text}");
    }
}

#[test]
fn the_encodings_of_triton_are_read() {
    let mma = |shape: &str, version: u32, warps: &str, instruction: &str| {
        format!(
            "tensor<{shape}xf32, #ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}, instrShape = {instruction}}}>>"
        )
    };
    let back = |text: &str, shape: &str| {
        written(text, &format!("triton:{shape}")).expect("a map from threads")
    };
    // The bases that Triton's own tests pin for these encodings.
    for (text, shape, bases) in [
        (
            mma("32x32", 2, "[1, 1]", "[16, 8]"),
            "32x32",
            "register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []",
        ),
        (
            mma("64x16", 3, "[4, 1]", "[16, 16, 8]"),
            "64x16",
            "register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []",
        ),
        (
            mma("64x16", 3, "[4, 2]", "[16, 16, 8]"),
            "64x16",
            "register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [0, 0]], block = []",
        ),
        (
            "tensor<32x32xf16, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>".to_owned(),
            "32x32",
            "register = [[0, 1], [0, 2], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []",
        ),
        (
            "tensor<16x16xf16, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>".to_owned(),
            "16x16",
            "register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [0, 0]], block = []",
        ),
    ] {
        assert_eq!(back(&text, shape), format!("#ttg.linear<{{{bases}}}>"), "{text}");
    }
    // The accumulator of mma.m16n8k16 is that of PTX: our atom, rows first, as a row-major number.
    let atom = read("(16,8):(8,1) o atom_c(mma.m16n8k16)");
    let triton = mma("16x8", 2, "[1, 1]", "[16, 8]");
    let threads_first = format!("select({triton}, 1, 0) == {atom}");
    assert_eq!(read(&threads_first), "true", "{atom}");
}

#[test]
fn the_shared_encodings_of_triton_are_read() {
    for (text, layout) in [
        (
            "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
            "Sw<3,3,3> o (8,64):(64,1)",
        ),
        (
            "#shared = #triton_gpu.shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>",
            "(1,1):(0,0)",
        ),
        (
            "!ttg.memdesc<64x32xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>, #smem, mutable>",
            "Sw<2,3,3> o (64,32):(32,1)",
        ),
        (
            "!ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>>",
            "Sw<3,3,3> o (64,64):(1,64)",
        ),
        (
            "!ttg.memdesc<64x128xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>>",
            "Sw<3,3,3> o (64,(64,2)):(64,(1,4096))",
        ),
        (
            "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 32}>",
            "Sw<2,2,3> o (8,16):(16,1)",
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [2, 2]]}, alignment = 16>",
            "Sw<1,1,2> o (4,4):(4,1)",
        ),
    ] {
        assert_eq!(read(text), layout, "{text}");
        if layout.contains("Sw") {
            let back = written(text, "triton-shared").expect("an encoding");
            let rows = read(&format!("size(get({layout}, 0))"));
            let columns = read(&format!("size(get({layout}, 1))"));
            let typed = format!("!ttg.memdesc<{rows}x{columns}xf16, {back}>");
            assert_eq!(read(&format!("{typed} == {layout}")), "true", "{back}");
        }
    }
}

#[test]
fn a_printed_linear_layout_is_read() {
    let text = "
 - register=1 -> (0, 1)
   register=2 -> (8, 0)
 - lane=1 -> (0, 2)
   lane=2 -> (0, 4)
   lane=4 -> (1, 0)
   lane=8 -> (2, 0)
   lane=16 -> (4, 0)
 - warp is a size 1 dimension
where out dims are: [dim0 (size 16), dim1 (size 8)]
";
    assert_eq!(read(text), "((2,2),32,1):((1,64),2,0)");
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    for (text, underlined, code) in [
        ("(?,8):(8,1)", "?", "syntax"),
        ("Layout((4, 8), strides=(1, 4))", "strides", "syntax"),
        ("cute.make_layout((4, 8), order=(1, 4))", "order", "syntax"),
        ("make_layout(make_shape(_4{}, _8{)", ")", "syntax"),
        ("make_shap(_4{}, _8{})", "make_shap", "unknown_name"),
        ("Int<x>{}", "x", "syntax"),
        (
            "ComposedLayout(Swizzle(3,4,3), 0)",
            "ComposedLayout(Swizzle(3,4,3), 0)",
            "wrong_arguments",
        ),
        (
            "Sw<3,0,3> o smem_ptr[16b](unset) o 8:1",
            "Sw<3,0,3>",
            "swizzle_in_bytes",
        ),
        (
            "4:1 o smem_ptr[16b](unset) o 8:1",
            "4:1",
            "swizzle_in_bytes",
        ),
        ("#ttg.slice<{dim = 1}>", "slice", "unknown_encoding"),
        (
            "#ttg.swizzled_shared<{vec = 3, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
            "vec = 3",
            "not_power_of_two",
        ),
        (
            "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 1]}>",
            "order = [1, 1]",
            "bad_field",
        ),
        (
            "#ttg.swizzled_shared<{vec = 8, perPhase = 1, order = [1, 0]}>",
            "swizzled_shared",
            "missing_field",
        ),
        (
            "tensor<60x64xf16, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>",
            "60x64",
            "not_power_of_two",
        ),
        (
            "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>",
            "sizePerThread = [4]",
            "rank_mismatch",
        ),
        (
            "#ttg.nvidia_mma<{versionMajor = 5, warpsPerCTA = [4, 1], instrShape = [16, 8]}>",
            "versionMajor = 5",
            "bad_field",
        ),
        (
            "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0], CTAsPerCGA = [2, 1]}>",
            "CTAsPerCGA = [2, 1]",
            "bad_field",
        ),
        ("#ttg.blocked<{sizePerThread [1]}>", "[", "syntax"),
        (
            "#ttg.blocked<{sizePerThread = [1125899906842624, 1152921504606846976], threadsPerWarp = [1152921504606846976, 1], warpsPerCTA = [1, 1], order = [1, 0]}>",
            "blocked",
            "too_large",
        ),
    ] {
        let error = match evaluate(text) {
            Ok(value) => panic!("{text} is {value}"),
            Err(error) => error,
        };
        let (start, end) = error.span().expect("a place");
        assert_eq!(
            (&text[start..end], error.code()),
            (underlined, code),
            "{}",
            error.text()
        );
        assert!(error.message().len() < 200, "{}", error.message());
    }
}

#[test]
fn what_a_notation_lacks_is_refused() {
    for (text, notation) in [
        ("[1,3]", "pycute"),
        ("(4,8):(1@0,1@1)", "cute-dsl"),
        ("(3,4):(1,3)", "triton"),
        ("8:1", "triton-shared"),
        ("(4,4):(1,1)", "triton-shared"),
        ("(32,4):(1,32)", "triton:8x8"),
    ] {
        let code = written(text, notation);
        assert_eq!(code, Err("not_in_notation".to_owned()), "{text} {notation}");
    }
    assert!(Notation::named("triton:3x8").is_err());
    for name in NOTATIONS {
        assert!(Notation::named(name).is_ok(), "{name}");
    }
}

/// A flat or nested layout, perhaps swizzled and moved.
fn layouts() -> impl Strategy<Value = String> {
    let leaf = (1_i64..9, -20_i64..70);
    let mode = prop_oneof![
        leaf.clone()
            .prop_map(|(n, d)| (n.to_string(), d.to_string())),
        proptest::collection::vec(leaf, 1..4).prop_map(|leaves| {
            let texts = |part: fn(&(i64, i64)) -> i64| {
                let parts: Vec<String> = leaves.iter().map(|l| part(l).to_string()).collect();
                format!("({})", parts.join(","))
            };
            (texts(|l| l.0), texts(|l| l.1))
        }),
    ];
    let plain = proptest::collection::vec(mode, 1..4).prop_map(|modes| {
        let (shape, stride): (Vec<String>, Vec<String>) = modes.into_iter().unzip();
        format!("({}):({})", shape.join(","), stride.join(","))
    });
    (plain, 0_u32..4, 0_u32..5, 3_u32..5, 0_i64..100).prop_map(|(plain, b, m, s, offset)| {
        if b == 0 {
            plain
        } else {
            format!("Sw<{b},{m},{s}> o {offset} o {plain}")
        }
    })
}

/// Bits of rows and columns, in any order, and a swizzle: a bijective layout of a tile of powers of two.
fn tiles() -> impl Strategy<Value = String> {
    (
        1_u32..6,
        2_u32..7,
        any::<bool>(),
        0_u32..4,
        0_u32..4,
        3_u32..5,
    )
        .prop_map(|(rows, columns, transposed, b, m, s)| {
            let (r, c) = (1 << rows, 1 << columns);
            let strides = if transposed { (1, r) } else { (c, 1) };
            let plain = format!("({r},{c}):({},{})", strides.0, strides.1);
            // A swizzle of bits beyond the tile would leave it.
            if b == 0 || m + s + b > rows + columns {
                plain
            } else {
                format!("Sw<{b},{m},{s}> o {plain}")
            }
        })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(text in layouts()) {
        let ours = read(&text);
        for notation in ["tilewright", "pycute", "cute", "cute-cpp", "cute-dsl"] {
            let foreign = written(&text, notation).expect("every layout has a text");
            prop_assert_eq!(&read(&foreign), &ours, "{} {}", notation, foreign);
        }
    }

    #[test]
    fn shared_encodings_read_back(text in tiles()) {
        let (rows, columns) = (
            read(&format!("size(get({text}, 0))")),
            read(&format!("size(get({text}, 1))")),
        );
        let foreign = written(&text, "triton-shared").expect("a bijective tile");
        let typed = format!("!ttg.memdesc<{rows}x{columns}xf16, {foreign}>");
        prop_assert_eq!(read(&format!("({typed}) == ({text})")), "true", "{}", foreign);
    }

    #[test]
    fn maps_from_threads_read_back(
        order in any::<bool>(),
        bits in proptest::collection::vec(0_u32..3, 6),
    ) {
        let extents = |i: usize| format!("[{}, {}]", 1 << bits[i], 1 << bits[i + 1]);
        let order = if order { "[1, 0]" } else { "[0, 1]" };
        let text = format!(
            "#ttg.blocked<{{sizePerThread = {}, threadsPerWarp = {}, warpsPerCTA = {}, order = {order}}}>",
            extents(0), extents(2), extents(4)
        );
        let shape = format!("{}x{}", 1 << (bits[0] + bits[2] + bits[4]), 1 << (bits[1] + bits[3] + bits[5]));
        let linear = written(&text, &format!("triton:{shape}")).expect("a map from threads");
        let typed = format!("tensor<{shape}xf32, {linear}>");
        prop_assert_eq!(read(&format!("{typed} == {text}")), "true", "{}", linear);
    }
}
