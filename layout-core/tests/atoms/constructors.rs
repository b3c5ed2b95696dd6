//! Atoms that users declare.

use layout_core::atoms::{self, CopyAtom, MmaAtom, Scalar, SparseMmaAtom, Target, tcgen05};
use layout_core::{Layout, LayoutError};

fn layout(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, LayoutError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn built_in_atoms_can_be_declared_by_users() {
    let atom = atoms::MMA_M16N8K16_F16;
    let types = [Scalar::F16, Scalar::F16, Scalar::F32];
    let new = MmaAtom::new(
        atom.name,
        [16, 8, 16],
        types,
        [atom.a, atom.b, atom.c],
        atom.target,
    );
    assert_eq!(new, Ok(atom));
    // Blocks and a D of its own: Volta's.
    let volta = atoms::MMA_M8N8K4_ROW_COL_F16_F16_F32;
    let one = layout("(32,8):(2,1)");
    let start = MmaAtom::new(
        volta.name,
        [8, 8, 4],
        [Scalar::F16; 3],
        [
            layout("(32,1):(1,0)"),
            layout("(32,1):(1,0)"),
            layout("(32,2):(2,1)"),
        ],
        volta.target,
    )
    .unwrap();
    assert_eq!(
        start
            .with_blocks(4, [one, one, volta.c])
            .unwrap_err()
            .code(),
        "unsupported"
    );
    let built = start.with_blocks(4, [volta.a, volta.b, volta.c]).unwrap();
    assert_eq!(built.with_d(Scalar::F32, volta.d), Ok(volta));
    // Slots wider than the values: WMMA's C.
    let wmma = atoms::WMMA_F16_F16;
    let built = MmaAtom::new(
        wmma.name,
        [16, 16, 16],
        [Scalar::F16; 3],
        [wmma.a, wmma.b, wmma.c],
        wmma.target,
    )
    .unwrap();
    assert_eq!(built.with_slots([16, 16, 32, 32]), Ok(wmma));
    assert_eq!(code(built.with_slots([8, 16, 32, 32])), "invalid_parameter");
}

#[test]
fn mma_constructor_refuses_layouts_that_do_not_fit() {
    let atom = atoms::MMA_M16N8K16_F16;
    let new = |shape, a: &str, b: &str, c: &str| {
        let text = |given: &str, own: Layout| if given.is_empty() { own } else { layout(given) };
        let operands = [text(a, atom.a), text(b, atom.b), text(c, atom.c)];
        MmaAtom::new(
            "test",
            shape,
            [Scalar::F16, Scalar::F16, Scalar::F32],
            operands,
            Target::Sm(80),
        )
    };
    assert!(new([16, 8, 16], "", "", "").is_ok());
    for shape in [[0, 8, 16], [16, -8, 16], [16, 8, 1 << 40]] {
        assert_eq!(
            code(new(shape, "", "", "")),
            "invalid_parameter",
            "{shape:?}"
        );
    }
    // Another number of threads, of B and of C.
    assert_eq!(
        code(new([16, 8, 16], "", "(16,8):(1,16)", "")),
        "invalid_parameter"
    );
    assert_eq!(
        code(new([16, 8, 16], "", "", "(64,2):(1,64)")),
        "invalid_parameter"
    );
    // One mode, or three.
    assert_eq!(
        code(new([16, 8, 16], "", "(32,2,2):(1,32,64)", "")),
        "rank_mismatch"
    );
    // A that misses elements, or has others; C that holds an element twice.
    assert_eq!(
        code(new([16, 8, 16], "(32,8):(1,0)", "", "")),
        "unsupported"
    );
    assert_eq!(
        code(new([16, 8, 16], "(32,8):(16,1)", "", "")),
        "unsupported"
    );
    assert_eq!(
        code(new([16, 8, 16], "", "", "((4,8),4):((32,1),0)")),
        "unsupported"
    );
    assert_eq!(
        code(new([16, 8, 16], "", "", "((4,8),8):((32,1),16)")),
        "unsupported"
    );
    // Replicated operands are held more than once.
    assert!(new([16, 8, 16], "((4,8),64):((64,0),1)", "", "").is_ok());
}

#[test]
fn copy_constructor_refuses_layouts_that_do_not_fit() {
    let atom = atoms::LDMATRIX_X4;
    let new = |bits, src, dst, matrix| {
        CopyAtom::new(atom.name, bits, src, dst, false, matrix, atom.target)
    };
    assert_eq!(new(16, atom.src, atom.dst, [8, 8]), Ok(atom));
    assert_eq!(
        code(new(0, atom.src, atom.dst, [8, 8])),
        "invalid_parameter"
    );
    assert_eq!(
        code(new(16, atom.src, layout("(16,16):(16,1)"), [8, 8])),
        "invalid_parameter"
    );
    assert_eq!(
        code(new(16, atom.src, atom.dst, [8, 7])),
        "invalid_parameter"
    );
    assert_eq!(
        code(new(16, atom.src, atom.dst, [0, 8])),
        "invalid_parameter"
    );
    assert_eq!(
        code(new(16, layout("(32,8):(0,1)"), atom.dst, [8, 8])),
        "unsupported"
    );
    assert_eq!(
        code(new(16, layout("(32,8):(16,1)"), atom.dst, [8, 8])),
        "unsupported"
    );
    assert_eq!(
        code(new(16, atom.src, layout("(32,8):(8,0)"), [8, 8])),
        "unsupported"
    );
}

#[test]
fn types_have_names_and_widths() {
    let mut names: Vec<&str> = Scalar::ALL.iter().map(|scalar| scalar.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Scalar::ALL.len());
    for (scalar, bits) in [
        (Scalar::B1, 1),
        (Scalar::S4, 4),
        (Scalar::E2m1, 4),
        (Scalar::E3m2, 6),
        (Scalar::Fp8, 8),
        (Scalar::Xf32, 32),
    ] {
        assert_eq!(scalar.bits(), bits);
    }
    assert_eq!(Target::Sm(80).to_string(), "sm_80 and later");
    assert_eq!(
        (Target::Sm(80).min_sm(), Target::Gfx("gfx942").min_sm()),
        (Some(80), None)
    );
    assert_eq!(atoms::registers(8, Scalar::F16), 4);
}

#[test]
fn huge_numbers_are_refused_and_not_overflowed() {
    let atom = atoms::MMA_M16N8K16_F16;
    assert_eq!(code(atom.with_slots([i64::MAX; 4])), "invalid_parameter");
    let sparse = atoms::MMA_SP_M16N8K16_F16;
    for shape in [[i64::MAX, 1], [4, i64::MAX], [i64::MIN, i64::MIN]] {
        let built = SparseMmaAtom::new(sparse.mma, false, shape, sparse.metadata, sparse.providers);
        assert_eq!(code(built), "invalid_parameter", "{shape:?}");
    }
    let mut wide = sparse.mma;
    (wide.n, wide.k) = (i64::MAX, i64::MAX - 3);
    let built = SparseMmaAtom::new(wide, false, [4, 1], sparse.metadata, sparse.providers);
    assert_eq!(code(built), "invalid_parameter");
    let copy = atoms::LDMATRIX_X1;
    for matrix in [[i64::MAX, 2], [2, i64::MAX], [i64::MAX, i64::MAX]] {
        let built = CopyAtom::new("huge", 16, copy.src, copy.dst, false, matrix, copy.target);
        assert_eq!(code(built), "invalid_parameter", "{matrix:?}");
    }
    for split in [i64::MAX, i64::MIN] {
        assert_eq!(
            code(tcgen05::tmem_copy(tcgen05::TmemShape::L16x32bx2, 1, split)),
            "invalid_parameter"
        );
    }
    for n in [i64::MAX, i64::MIN] {
        assert_eq!(
            code(tcgen05::accumulator(tcgen05::CtaGroup::One, n, 8)),
            "invalid_parameter"
        );
        assert_eq!(
            code(tcgen05::accumulator(tcgen05::CtaGroup::One, 64, n)),
            "invalid_parameter"
        );
        let major = tcgen05::Major::Mn;
        assert!(tcgen05::smem_operand(major, tcgen05::SmemSwizzle::None, 16, n, n).is_err());
        assert!(tcgen05::smem_operand(major, tcgen05::SmemSwizzle::B128, n, 64, 64).is_err());
        assert_eq!(
            code(atoms::vector_copy(n, Scalar::F16, true)),
            "invalid_parameter"
        );
    }
}
