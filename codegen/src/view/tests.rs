//! What the public layer cannot say, said with its parts: the prover refuses it. And layouts that are derived from uses.

use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};

use crate::Arch;
use crate::ir::{Axis, Class, Element, Kernel, Type};
use crate::prove::ProofError;
use crate::view::{Use, ViewError};

/// y[i] = 0, with the store's guard taken from the layer or left out.
fn fill(guarded: bool) -> Result<crate::Proven, ProofError> {
    let mut k = Kernel::new("fill", 128);
    let n = k.size("n", 1 << 30);
    let y = k.output("y", Element::F32, &[n]);
    let block = k.tiles(Axis::X, n, 128).expect("the axis is free");
    let (thread, one) = (
        k.thread(),
        Layout::parse("(128,1):(1,0)").expect("a layout"),
    );
    let tile = y.tile(&mut k, &[128], &[block]).expect("one mode");
    if guarded {
        let share = tile.partition(&mut k, &one, thread).expect("a partition");
        let zero = k.fragment_of(&share, 0.0).expect("one value");
        k.store_fragment(&share, &zero).expect("one value");
    } else {
        let zero = k.reg(Class::F32);
        k.set(Type::F32, zero, 0.0f32);
        let at = tile.element(&mut k, &[thread]).expect("an address");
        k.store(None, Type::F32, &[zero], at);
    }
    k.build(Arch(80))
}

#[test]
fn a_store_without_its_guard_is_refused() {
    assert!(fill(true).is_ok());
    let error = fill(false).expect_err("nothing keeps the last block inside");
    assert!(
        matches!(&error, ProofError::Bounds { mode: 0, .. }),
        "{error:?}"
    );
}

fn swizzled(text: &str) -> Swizzled {
    Swizzled::parse(text).expect(text)
}

#[test]
fn shared_buffers_do_not_overlap() -> Result<(), ViewError> {
    let mut k = Kernel::new("k", 32);
    let layouts = [
        "(32,32):(33,1)",
        "Sw<3,4,3> o (8,64):(64,1)",
        "7:1",
        "(64,64):(64,1)",
    ];
    for (i, text) in layouts.iter().enumerate() {
        k.shared(&format!("tile{i}"), Element::F16, &swizzled(text))?;
    }
    let entry = k.finish();
    let mut end = 0;
    for (buffer, text) in entry.buffers.iter().zip(layouts) {
        let crate::ir::Arrangement::Shared { offset, .. } = buffer.arrangement else {
            panic!("{} is not in shared memory", buffer.name);
        };
        assert!(
            offset >= end,
            "{} begins at {offset}, before {end}",
            buffer.name
        );
        let layout = swizzled(text);
        end = offset
            + 2 * (0..layout.layout().size())
                .map(|i| layout.index(i) + 1)
                .max()
                .unwrap_or(0);
    }
    assert!(entry.shared.is_some_and(|s| s.bytes >= end as u64));
    Ok(())
}

/// The layout that is derived for uses of a tile.
fn derived(shape: [i64; 2], element: Element, uses: &[Use]) -> Result<String, ViewError> {
    let mut k = Kernel::new("k", 128);
    let tile = k.shared_for("tile", element, shape, uses)?;
    let derivation = tile.derivation().expect("derived");
    assert!(
        derivation
            .accesses()
            .iter()
            .all(|a| a.wavefronts == a.ideal)
    );
    assert!(k.finish().comments[0].starts_with("tile = "));
    Ok(derivation.layout.expect("a layout").to_string())
}

fn layout(text: &str) -> Layout {
    Layout::parse(text).expect(text)
}

#[test]
fn a_tile_read_by_rows_alone_stays_plain() {
    let rows = Use::load(&layout("((32,4),8):((32,1),4)"));
    let plain = derived([32, 32], Element::F32, &[rows]);
    assert_eq!(plain, Ok("(32,32):(32,1)".to_owned()));
}

#[test]
fn a_use_of_the_transposed_tile_is_one_of_its_columns() {
    // (thread, value) -> row + 32·column: a warp has a column, or a row of the transposed tile.
    let columns = layout("((32,4),8):((1,32),128)");
    let rows = layout("((32,4),8):((32,1),4)");
    let direct = derived(
        [32, 32],
        Element::F32,
        &[Use::load(&columns), Use::store(&rows)],
    );
    let by_transposing = [Use::load(&rows).transposed(), Use::store(&rows)];
    assert_eq!(direct, derived([32, 32], Element::F32, &by_transposing));
    assert_eq!(direct, Ok("Sw<5,0,5> o (32,32):(32,1)".to_owned()));
}

#[test]
fn operands_and_parts_of_a_tile_are_uses() {
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(1,1,1):(0,0,0)")).expect("a warp");
    let matrices = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A).expect("A");
    // The same 16 rows, by a warp for itself or of all rows at once.
    let part = derived(
        [64, 64],
        Element::F16,
        &[Use::source(&matrices).of([16, 64])],
    );
    let whole = derived([64, 64], Element::F16, &[Use::source(&matrices)]);
    assert_eq!(part, whole);
    // Pairs of halves, element by element.
    let pairs = Use::operand(&mma, Operand::A).vectors(2);
    assert!(derived([16, 64], Element::F16, &[pairs]).is_ok());
}

#[test]
fn uses_that_do_not_fit_are_refused() {
    let rows = layout("((32,4),8):((32,1),4)");
    let wide = derived([32, 32], Element::F32, &[Use::load(&rows).vectors(8)]);
    assert!(matches!(wide, Err(ViewError::Vector { elements: 8, .. })));
    // Lanes that write the same element.
    let broadcast = derived(
        [32, 32],
        Element::F32,
        &[Use::store(&layout("(32,1):(0,0)"))],
    );
    assert!(matches!(broadcast, Err(ViewError::Derive { .. })));
    let nothing = derived([32, 32], Element::F32, &[]);
    assert!(matches!(nothing, Err(ViewError::Derive { .. })));
    let empty = derived([0, 32], Element::F32, &[Use::load(&rows)]);
    assert!(matches!(empty, Err(ViewError::Extent { extent: 0, .. })));
}

/// B of `wgmma` is read from shared memory by a descriptor; there is no fragment of it.
#[test]
fn b_of_a_warpgroup_is_no_fragment() {
    let types = [
        (atoms::Scalar::Bf16, atoms::Scalar::F32),
        (atoms::Scalar::S8, atoms::Scalar::S32),
    ];
    for (operand, sums) in types {
        let atom = atoms::wgmma(64, operand, sums).expect("an instruction");
        let mma = TiledMma::new(atom, &layout("(1,1,1):(0,0,0)")).expect("one atom");
        let mut k = Kernel::new("k", 128);
        let thread = k.thread();
        let c = k.accumulators(&mma, [64, 64], thread).expect("64 x 64");
        let error = k.gemm(&mma, &c, &c, &c).expect_err("no fragments");
        assert!(
            matches!(error, ViewError::Operand { instruction, operand: 'B', .. } if instruction == atom.name),
            "{error}"
        );
    }
}
