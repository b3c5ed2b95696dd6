//! Products with a sparse A: `mma.sp` of fragments, and of metadata in the order in which lanes read it.

use float8::F8E4M3;
use half::{bf16, f16};
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::Staged;
use tilewright::codegen::view::{Multiplicand, Use, ViewError};
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{Arg, BufferElement, On, run};
use tilewright::{Operand, TiledCopy, TiledMma, atoms};

use super::{Result, layout};
use atoms::SparseMmaAtom;

/// Rows, columns and k of a block.
const TILE: [i64; 3] = [64, 32, 128];

/// A with its chunks of which half is stored, and what a kernel is given of it.
struct Sparse {
    /// Rows, and all columns.
    shape: [usize; 2],
    whole: Vec<i32>,
    stored: Vec<i32>,
    /// Rows of atoms, words of each.
    words: [usize; 2],
    metadata: Vec<i32>,
}

/// Of each chunk of a row, which elements are stored, in their order, and the field that says so.
fn kept(atom: &SparseMmaAtom, number: usize) -> (Vec<usize>, u32) {
    if atom.chunk == 2 {
        return if number.is_multiple_of(3) {
            (vec![0], 0b0100)
        } else {
            (vec![1], 0b1110)
        };
    }
    let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
    let [mut first, mut second] = pairs[number % 6];
    if !atom.ordered && number % 4 == 1 {
        (first, second) = (second, first);
    }
    (vec![first, second], (first | second << 2) as u32)
}

impl Sparse {
    /// Of whole numbers, with metadata for at least so many rows of atoms.
    fn new(atom: &SparseMmaAtom, [m, k]: [usize; 2], least: usize) -> Result<Self> {
        let chunk = atom.chunk as usize;
        let pattern = |row: i64, at: i64| (row * 5 + at * 7 + row * at % 11 + at / 6) as usize;
        let field = |row, at| kept(atom, pattern(row, at)).1;
        let (mut whole, mut stored) = (vec![0; m * k], Vec::new());
        for row in 0..m {
            for at in 0..k / chunk {
                for place in kept(atom, pattern(row as i64, at as i64)).0 {
                    let value = ((row * 3 + at * 5 + place * 2 + at / 7) % 9) as i32 - 4;
                    whole[row * k + at * chunk + place] = value;
                    stored.push(value);
                }
            }
        }
        let each = atom.metadata_k()? as usize;
        let words = [m.div_ceil(16).max(least), k.div_ceil(each) * 32];
        let mut metadata = Vec::new();
        for i in 0..words[0] * words[1] {
            let at = [i / words[1], i % words[1]].map(|x| x as i64);
            metadata.push(atom.metadata_in_memory(at, field)? as i32);
        }
        let shape = [m, k];
        Ok(Self {
            shape,
            whole,
            stored,
            words,
            metadata,
        })
    }

    /// Element (i, j) of A·Bᵀ.
    fn times(&self, b: &[i32], i: usize, j: usize) -> i32 {
        let k = self.shape[1];
        let (row, column) = (&self.whole[i * k..][..k], &b[j * k..][..k]);
        row.iter().zip(column).map(|(x, y)| x * y).sum()
    }
}

fn sizes(k: &mut Kernel) -> [tilewright::codegen::index::Expr; 6] {
    ["m", "n", "k", "stored", "rows", "words"].map(|name| k.size(name, 1 << 15))
}

/// c = a·bᵀ by 2 x 2 warps, straight from global memory.
fn product(atom: SparseMmaAtom, [factor, sum]: [Element; 2], arch: Arch) -> Result<Proven> {
    let [tm, tn, tk] = TILE;
    let each = atom.metadata_k()?;
    let mut k = Kernel::new("sparse", 128);
    let [m, n, depth, stored, rows, words] = sizes(&mut k);
    let a = k.input("a", factor, &[m, stored]);
    let metadata = k.input("metadata", Element::S32, &[rows, words]);
    let b = k.input("b", factor, &[n, depth]);
    let c = k.output("c", sum, &[m, n]);
    let (i, j) = (k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?);
    let mma = TiledMma::sparse(atom, &layout("(2,2,1):(1,2,0)"), [32, 16, each])?;
    let thread = k.thread();
    let sums = k.accumulators(&mma, [tm, tn], thread)?;
    let steps = k.tiles_in(depth, tk)?;
    k.for_loop("steps", 0, 1, steps, |k, step| {
        let a = a.tile(k, &[tm, tk / 2], &[i, step])?;
        let b = b.tile(k, &[tn, tk], &[j, step])?;
        let metadata = metadata.tile(k, &[tm / 16, tk / each * 32], &[i, step])?;
        let a = a.partition_a(k, &mma, thread)?;
        let b = b.partition_b(k, &mma, thread)?;
        let metadata = metadata.partition_metadata(k, &mma, thread)?;
        let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
        let metadata = k.load_fragment(&metadata)?;
        k.gemm(&mma, (&a, &metadata), &b, &sums)
    })?;
    let c = c.tile(&mut k, &[tm, tn], &[i, j])?;
    let c = c.partition_c(&mut k, &mma, thread)?;
    k.store_fragment(&c, &sums)?;
    Ok(k.build(arch)?)
}

/// The same through shared memory: three stages of a, b and the metadata, by cp.async; a and b by ldmatrix.
fn staged(atom: SparseMmaAtom) -> Result<Proven> {
    let [tm, tn, tk] = [64, 64, 64];
    let mut k = Kernel::new("sparse_staged", 128);
    let [m, n, depth, stored, rows, words] = sizes(&mut k);
    let a = k.input("a", Element::F16, &[m, stored]);
    let metadata = k.input("metadata", Element::S32, &[rows, words]);
    let b = k.input("b", Element::F16, &[n, depth]);
    let c = k.output("c", Element::F32, &[m, n]);
    let (i, j) = (k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?);
    let thread = k.thread();
    let mma = TiledMma::sparse(atom, &layout("(2,2,1):(1,2,0)"), [32, 32, 64])?;
    let [read_a, read_b] = [Operand::A, Operand::B]
        .map(|operand| TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, operand));
    let (read_a, read_b) = (read_a?, read_b?);
    let (eight, vector) = (atoms::CP_ASYNC_16.recast(16)?, layout("(1,8):(0,1)"));
    let write_a = TiledCopy::new(eight, &layout("(32,4):(4,1)"), &vector)?;
    let write_b = TiledCopy::new(eight, &layout("(16,8):(8,1)"), &vector)?;
    let write_words = TiledCopy::new(
        atoms::CP_ASYNC_4.recast(32)?,
        &layout("(4,32):(32,1)"),
        &layout("(1,1):(0,0)"),
    )?;
    let uses_a = [Use::target(&write_a), Use::source(&read_a)];
    let uses_b = [Use::target(&write_b), Use::source(&read_b)];
    let uses_words = [Use::target(&write_words)];
    let tiles = [
        Staged::new("tile_a", Element::F16, [tm, tk / 2], &uses_a),
        Staged::new("tile_b", Element::F16, [tn, tk], &uses_b),
        Staged::new("tile_metadata", Element::S32, [tm / 16, 32], &uses_words),
    ];
    let ring = k.ring(3, tiles, |k, to, t| {
        let from = [
            (&a, [tm, tk / 2], [i, t], &write_a),
            (&b, [tn, tk], [j, t], &write_b),
            (&metadata, [tm / 16, 32], [i, t], &write_words),
        ];
        for ((from, shape, at, by), to) in from.into_iter().zip(to) {
            let from = from.tile(k, &shape, &at)?.partition_s(k, by, thread)?;
            let to = to.partition_d(k, by, thread)?;
            k.copy(&from, &to)?;
        }
        Ok(())
    })?;
    let sums = k.accumulators(&mma, [tm, tn], thread)?;
    let steps = k.tiles_in(depth, tk)?;
    k.pipeline(&[&ring], steps, |k, step| {
        let [a, b, words] = step.arrived(k, &ring)?;
        let a = a.partition_s(k, &read_a, thread)?;
        let b = b.partition_s(k, &read_b, thread)?;
        let words = words.partition_metadata(k, &mma, thread)?;
        let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
        let words = k.load_fragment(&words)?;
        k.gemm(&mma, (&a, &words), &b, &sums)
    })?;
    let c = c.tile(&mut k, &[tm, tn], &[i, j])?;
    let c = c.partition_c(&mut k, &mma, thread)?.vectors(&k, 2)?;
    k.store_fragment(&c, &sums)?;
    Ok(k.build(Arch(80))?)
}

/// Whole numbers as elements of a type.
fn input(element: Element, all: &[i32]) -> Arg<'static> {
    fn of<T: BufferElement>(all: &[i32], f: impl Fn(f32) -> T) -> Arg<'static> {
        Arg::input(&all.iter().map(|&x| f(x as f32)).collect::<Vec<T>>())
    }
    match element {
        Element::F16 => of(all, f16::from_f32),
        Element::Bf16 => of(all, bf16::from_f32),
        Element::S8 => of(all, |x| x as i8),
        Element::E4m3 => of(all, F8E4M3::from_f32),
        _ => of(all, |x| x),
    }
}

/// Runs a product: `Err` with what is wrong.
fn checked(
    kernel: &Proven,
    a: &Sparse,
    n: usize,
    [factor, sum]: [Element; 2],
) -> Result<std::result::Result<(), String>> {
    let [m, k] = a.shape;
    let b: Vec<i32> = (0..n * k)
        .map(|i| ((i * 5 + i / 31) % 7) as i32 - 3)
        .collect();
    let outputs = m * n;
    let size = |n: usize| Arg::from(n as u32);
    let c = match sum {
        Element::F16 => Arg::output::<f16>(outputs),
        Element::S32 => Arg::output::<i32>(outputs),
        _ => Arg::output::<f32>(outputs),
    };
    let args = [
        ("m", size(m)),
        ("n", size(n)),
        ("k", size(k)),
        ("stored", size(a.stored.len() / m)),
        ("rows", size(a.words[0])),
        ("words", size(a.words[1])),
        ("a", input(factor, &a.stored)),
        ("metadata", Arg::input(&a.metadata)),
        ("b", input(factor, &b)),
        ("c", c),
    ];
    let outcome = run(kernel, On::Emulator, args)?;
    if let Some(finding) = outcome.findings().first() {
        return Ok(Err(finding.clone()));
    }
    let c: Vec<i32> = match sum {
        Element::F16 => outcome
            .get::<f16>("c")?
            .iter()
            .map(|x| x.to_f32() as i32)
            .collect(),
        Element::S32 => outcome.get("c")?,
        _ => outcome.get::<f32>("c")?.iter().map(|x| *x as i32).collect(),
    };
    let wrong = (0..m * n).find(|&i| c[i] != a.times(&b, i / n, i % n));
    Ok(wrong.map_or(Ok(()), |i| {
        Err(format!("row {}, column {} is wrong", i / n, i % n))
    }))
}

#[test]
fn products_of_every_type_and_ragged_sizes() -> Result {
    use Element::{Bf16, E4m3, F16, F32, S8, S32};
    use atoms::*;
    let all = vec![
        (MMA_SP_M16N8K16_F16, [F16, F32]),
        (MMA_SP_ORDERED_M16N8K16_F16, [F16, F32]),
        (MMA_SP_ORDERED_M16N8K16_F16_F16, [F16, F16]),
        (MMA_SP_ORDERED_M16N8K16_BF16, [Bf16, F32]),
        (MMA_SP_M16N8K32_F16, [F16, F32]),
        (MMA_SP_ORDERED_M16N8K32_F16, [F16, F32]),
        (MMA_SP_ORDERED_M16N8K32_BF16, [Bf16, F32]),
        (MMA_SP_ORDERED_M16N8K8_TF32, [F32, F32]),
        (MMA_SP_M16N8K16_TF32, [F32, F32]),
        (MMA_SP_M16N8K32_S8, [S8, S32]),
        (MMA_SP_ORDERED_M16N8K64_S8, [S8, S32]),
        (MMA_SP_ORDERED_M16N8K64_E4M3, [E4m3, F32]),
    ];
    for (atom, types) in all {
        let arch = Arch(atom.mma.target.min_sm().unwrap_or(80));
        let kernel = product(atom, types, arch)?;
        assert_eq!(kernel.proof.covered, ["c"]);
        super::natural::assembles(&kernel, arch);
        for (m, n, k) in [
            (64, 32, 128),
            (5, 40, 64),
            (70, 33, 200),
            (16, 8, 4),
            (3, 3, 0),
        ] {
            let a = Sparse::new(&atom, [m, k], 0)?;
            let result = checked(&kernel, &a, n, types)?;
            assert_eq!(result, Ok(()), "{}: {m} x {n} x {k}", atom.mma.name);
        }
    }
    Ok(())
}

#[test]
fn products_through_shared_memory() -> Result {
    for atom in [
        atoms::MMA_SP_ORDERED_M16N8K16_F16,
        atoms::MMA_SP_M16N8K32_F16,
    ] {
        let kernel = staged(atom)?;
        super::natural::assembles(&kernel, Arch(80));
        let selectors: Vec<_> = (0..atom.selectors())
            .map(|s| kernel.ptx.matches(&format!(", {s:#x};")).count())
            .collect();
        assert!(selectors.iter().all(|&n| n > 0), "{selectors:?}");
        for (m, n, k) in [(64, 64, 64), (70, 90, 200), (130, 8, 1000)] {
            // cp.async fills what is outside with zeros, which is no metadata: there are words for whole tiles.
            let a = Sparse::new(&atom, [m, k], m.div_ceil(64) * 4)?;
            let result = checked(&kernel, &a, n, [Element::F16, Element::F32])?;
            assert_eq!(result, Ok(()), "{}: {m} x {n} x {k}", atom.mma.name);
        }
    }
    Ok(())
}

/// What the prover does not follow, the numbers tell: another register of metadata, another selector that there is.
#[test]
fn metadata_is_data() -> Result {
    let types = [Element::F16, Element::F32];
    let atom = atoms::MMA_SP_ORDERED_M16N8K16_F16;
    let a = Sparse::new(&atom, [64, 128], 0)?;
    let mut words = a.metadata.clone();
    words.rotate_left(1);
    let rotated = Sparse {
        metadata: words,
        ..Sparse::new(&atom, [64, 128], 0)?
    };
    let nothing = Sparse {
        metadata: vec![0; a.metadata.len()],
        ..Sparse::new(&atom, [64, 128], 0)?
    };
    let kernel = product(atom, types, Arch(80))?;
    let said = |a: &Sparse| checked(&kernel, a, 32, types);
    assert_eq!(said(&a)?, Ok(()));
    assert_eq!(said(&rotated)?, Err("row 0, column 0 is wrong".to_owned()));
    let finding = said(&nothing)?.expect_err("no metadata");
    assert!(
        finding.contains("the places of two elements of a chunk must differ"),
        "{finding}"
    );
    Ok(())
}

#[test]
fn wrong_operands_are_told() -> Result {
    let mut k = Kernel::new("k", 32);
    let one = layout("(1,1,1):(0,0,0)");
    let atom = atoms::MMA_SP_ORDERED_M16N8K16_F16;
    let mma = TiledMma::sparse(atom, &one, [16, 8, 64])?;
    let dense = TiledMma::new(atoms::MMA_M16N8K16_F16, &one)?;
    let lane = k.lane();
    let tile = |k: &mut Kernel, name: &str, element, shape: &str| {
        k.shared(name, element, &super::swizzled(shape))
    };
    let a = tile(&mut k, "a", Element::F16, "(16,32):(32,1)")?;
    let b = tile(&mut k, "b", Element::F16, "(8,64):(64,1)")?;
    let words = tile(&mut k, "words", Element::S32, "(1,32):(32,1)")?;
    let more = tile(&mut k, "more", Element::S32, "(1,64):(64,1)")?;
    let floats = tile(&mut k, "floats", Element::F32, "(1,32):(32,1)")?;
    let short = tile(&mut k, "short", Element::S32, "(1,16):(16,1)")?;
    let said = |e: ViewError| e.to_string();
    // Types and extents of what is shared out.
    let error = floats
        .partition_metadata(&mut k, &mma, lane)
        .expect_err("f32");
    assert_eq!(
        said(error),
        format!(
            "E of {} is metadata: words of s32, not `floats` of f32",
            atom.mma.name
        )
    );
    assert!(short.partition_metadata(&mut k, &mma, lane).is_err());
    let error = words
        .partition_metadata(&mut k, &dense, lane)
        .expect_err("dense");
    assert!(said(error).contains("a sparse instruction"));
    // Fragments.
    let part = a.partition_a(&mut k, &mma, lane)?;
    let stored = k.load_fragment(&part)?;
    let part = a.partition_a(&mut k, &dense, lane)?;
    let whole = k.load_fragment(&part)?;
    let part = b.partition_b(&mut k, &mma, lane)?;
    let b = k.load_fragment(&part)?;
    let [words, more] = [words, more].map(|w| w.partition_metadata(&mut k, &mma, lane));
    let (words, more) = (k.load_fragment(&words?)?, k.load_fragment(&more?)?);
    let c = k.accumulators(&mma, [16, 8], lane)?;
    k.gemm(&mma, (&stored, &words), &b, &c)?;
    let name = atom.mma.name;
    let mut refused = |mma: &TiledMma, a: Multiplicand<'_>, b: Multiplicand<'_>, wanted: &str| {
        let error = k.gemm(mma, a, b, &c).expect_err(wanted);
        let error = error.to_string();
        assert!(error.starts_with(wanted), "{error}");
    };
    let plain = Multiplicand::from(&b);
    refused(
        &mma,
        (&stored).into(),
        plain,
        &format!(
            "A of {name} is the fragments of its stored half and of its metadata: `(&a, &metadata)`, not a fragment without metadata"
        ),
    );
    refused(
        &mma,
        (&stored, &more).into(),
        plain,
        &format!("E of {name} is 1x32, not a fragment of 1x64 s32"),
    );
    refused(
        &mma,
        (&stored, &stored).into(),
        plain,
        &format!(
            "E of {name} is elements of s32: the words of metadata, not a fragment of 16x32 f16"
        ),
    );
    refused(
        &mma,
        (&stored, &words).into(),
        (&b, &words).into(),
        &format!(
            "B of {name} is a fragment without metadata: only A is sparse, not a fragment of 8x64 f16 with metadata"
        ),
    );
    refused(
        &dense,
        (&whole, &words).into(),
        plain,
        &format!(
            "A of {} is all of A, without metadata, not a fragment with metadata",
            dense.atom().name
        ),
    );
    // A tiled mma of a sparse instruction needs `TiledMma::sparse`.
    assert!(TiledMma::new(atom.mma, &one).is_err());
    // A tile less deep than what a register of metadata describes.
    assert!(TiledMma::sparse(atom, &one, [16, 8, 32]).is_err());
    // Warps along k would have parts of sums.
    let two = layout("(1,1,2):(0,0,1)");
    assert!(TiledMma::sparse(atom, &two, [16, 8, 64]).is_err());
    Ok(())
}
