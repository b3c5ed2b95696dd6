//! Fragments on the emulator: each kind of matrix instruction, its operands loaded element by element from global memory and by `ldmatrix` from
//! shared tiles whose layouts were derived, for sizes that the tiles do not divide.

use std::error::Error;

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use tilewright::atoms::{CopyAtom, LDMATRIX_X4, LDMATRIX_X4_TRANS, MmaAtom, vector_copy};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::codegen::ir::{Axis, Kernel};
use tilewright::codegen::value::U32;
use tilewright::codegen::view::{Use, View, ViewError};
use tilewright::codegen::{Proven, prove::ProofError};
use tilewright::host::{Arg, BufferElement, On, run};
use tilewright::{Layout, Operand, TiledCopy, TiledMma, atoms};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Two warps, one below the other, with two atoms side by side each.
fn tiled(atom: MmaAtom) -> Result<TiledMma> {
    let tile = [2 * atom.m, 2 * atom.n, atom.k];
    let [m, n, k] = tile.map(|extent| Layout::mode(extent, 1));
    let warps = Layout::parse("(2,1,1):(1,0,0)")?;
    Ok(TiledMma::with_tile(atom, &warps, &[m?, n?, k?])?)
}

/// c = a·bᵀ for a depth of two atoms: a is m × depth, b is n × depth.
fn product(atom: MmaAtom, [element, sum]: [Element; 2], shared: bool) -> Result<Proven> {
    let mma = tiled(atom)?;
    let (tm, tn, depth) = (2 * atom.m, 2 * atom.n, 2 * atom.k);
    let mut k = Kernel::new("product", 64);
    let (m, n, length) = (
        k.size("m", 1 << 20),
        k.size("n", 1 << 20),
        k.constant(depth),
    );
    let a = k.input("a", element, &[m, length]);
    let b = k.input("b", element, &[n, length]);
    let c = k.output("c", sum, &[m, n]);
    let (i, j) = (k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?);
    let (thread, zero) = (k.thread(), k.constant(0));
    let a = a.tile(&mut k, &[tm, depth], &[i, zero])?;
    let b = b.tile(&mut k, &[tn, depth], &[j, zero])?;
    let (x, y) = if shared {
        let (x, read_x) = staged(&mut k, &mma, "x", (&a, [tm, depth]), Operand::A, element)?;
        let (y, read_y) = staged(&mut k, &mma, "y", (&b, [tn, depth]), Operand::B, element)?;
        k.barrier();
        let x = x.partition_s(&mut k, &read_x, thread)?;
        (x, y.partition_s(&mut k, &read_y, thread)?)
    } else {
        let together = (4 / i64::from(element.bytes())).max(1);
        let x = a.partition_a(&mut k, &mma, thread)?.vectors(&k, together)?;
        let y = b.partition_b(&mut k, &mma, thread)?.vectors(&k, together)?;
        (x, y)
    };
    let (x, y) = (k.load_fragment(&x)?, k.load_fragment(&y)?);
    let sums = k.accumulators(&mma, [tm, tn], thread)?;
    k.gemm(&mma, &x, &y, &sums)?;
    let c = c
        .tile(&mut k, &[tm, tn], &[i, j])?
        .partition_c(&mut k, &mma, thread)?
        .vectors(&k, 2)?;
    k.store_fragment(&c, &sums)?;
    let arch = atom.target.min_sm().ok_or("a target")?;
    Ok(k.build(Arch(arch.max(80)))?)
}

/// A tile copied to shared memory by vectors of 16 bytes, and how `ldmatrix` reads it.
fn staged(
    k: &mut Kernel,
    mma: &TiledMma,
    name: &str,
    (from, shape): (&View, [i64; 2]),
    operand: Operand,
    element: Element,
) -> Result<(View, TiledCopy)> {
    let bits = 8 * i64::from(element.bytes());
    let read = TiledCopy::for_operand(LDMATRIX_X4.recast(bits)?, mma, operand)?;
    let write = rows(shape, bits)?;
    let uses = [Use::target(&write), Use::source(&read)];
    let tile = k.shared_for(name, element, shape, &uses)?;
    let thread = k.thread();
    let from = from.partition_s(k, &write, thread)?;
    let to = tile.partition_d(k, &write, thread)?;
    k.copy(&from, &to)?;
    Ok((tile, read))
}

/// 64 threads over rows of a tile, 16 bytes each.
fn rows(shape: [i64; 2], bits: i64) -> Result<TiledCopy> {
    let together = 128 / bits;
    let scalar = match bits {
        8 => atoms::Scalar::S8,
        16 => atoms::Scalar::F16,
        _ => atoms::Scalar::F32,
    };
    let across = shape[1] / together;
    let threads = Layout::parse(&format!("({},{across}):({across},1)", 64 / across))?;
    let values = Layout::parse(&format!("(1,{together}):(0,1)"))?;
    Ok(TiledCopy::new(
        vector_copy(together, scalar, false)?,
        &threads,
        &values,
    )?)
}

/// Small integers, which every type holds and every sum adds up exactly.
fn integers(seed: usize, n: usize) -> Vec<i32> {
    (0..n)
        .map(|i| ((i * 7 + seed * 5) * (i + 3) % 7) as i32 - 3)
        .collect()
}

/// Runs a kernel on integers, and holds c against them.
fn check<E: BufferElement, S: BufferElement + PartialEq + std::fmt::Debug>(
    kernel: &Proven,
    depth: usize,
    to_element: impl Fn(i32) -> E,
    to_sum: impl Fn(i32) -> S,
) -> Result {
    for (m, n) in [(32, 16), (33, 17), (5, 40), (64, 24)] {
        let (a, b) = (integers(1, m * depth), integers(2, n * depth));
        let of = |all: &[i32]| all.iter().map(|&x| to_element(x)).collect::<Vec<_>>();
        let outcome = run(
            kernel,
            On::Emulator,
            [
                ("m", Arg::from(m as u32)),
                ("n", Arg::from(n as u32)),
                ("a", Arg::input(&of(&a))),
                ("b", Arg::input(&of(&b))),
                ("c", Arg::output::<S>(m * n)),
            ],
        )?;
        outcome.assert_clean();
        outcome.assert_counted_as_proven();
        let c: Vec<S> = outcome.get("c")?;
        for (at, c) in c.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let sum = (0..depth)
                .map(|t| a[i * depth + t] * b[j * depth + t])
                .sum();
            assert_eq!(*c, to_sum(sum), "{m}x{n}: row {i}, column {j}");
        }
    }
    for a in kernel.accesses() {
        assert_eq!(a.wavefronts, a.ideal, "{a:?}");
    }
    Ok(())
}

#[test]
fn halves() -> Result {
    for shared in [false, true] {
        let f16s = product(
            atoms::MMA_M16N8K16_F16,
            [Element::F16, Element::F32],
            shared,
        )?;
        check(&f16s, 32, |x| f16::from_f32(x as f32), |x| x as f32)?;
        let bf16s = product(
            atoms::MMA_M16N8K16_BF16,
            [Element::Bf16, Element::F32],
            shared,
        )?;
        check(&bf16s, 32, |x| bf16::from_f32(x as f32), |x| x as f32)?;
        let narrow = product(
            atoms::MMA_M16N8K16_F16_F16,
            [Element::F16, Element::F16],
            shared,
        )?;
        check(
            &narrow,
            32,
            |x| f16::from_f32(x as f32),
            |x| f16::from_f32(x as f32),
        )?;
    }
    Ok(())
}

#[test]
fn words_and_double_words() -> Result {
    for shared in [false, true] {
        let tf32 = product(
            atoms::MMA_M16N8K8_TF32,
            [Element::F32, Element::F32],
            shared,
        )?;
        check(&tf32, 16, |x| x as f32, |x| x as f32)?;
    }
    let f64s = product(atoms::MMA_M8N8K4_F64, [Element::F64, Element::F64], false)?;
    check(&f64s, 8, f64::from, f64::from)
}

#[test]
fn bytes() -> Result {
    for shared in [false, true] {
        let s8 = product(atoms::MMA_M16N8K32_S8, [Element::S8, Element::S32], shared)?;
        check(&s8, 64, |x| x as i8, |x| x)?;
        let e4m3 = product(
            atoms::MMA_M16N8K32_E4M3,
            [Element::E4m3, Element::F32],
            shared,
        )?;
        check(&e4m3, 64, |x| F8E4M3::from_f32(x as f32), |x| x as f32)?;
        let e5m2 = product(
            atoms::MMA_M16N8K32_E5M2,
            [Element::E5m2, Element::F32],
            shared,
        )?;
        check(&e5m2, 64, |x| F8E5M2::from_f32(x as f32), |x| x as f32)?;
    }
    Ok(())
}

/// c = max(2·a·bᵀ + column, 0) rounded to f16, by a warp for each tile, with b stored across its depth.
#[test]
fn an_epilogue_knows_its_coordinates() -> Result {
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let mut k = Kernel::new("epilogue", 64);
    let (m, n, depth) = (k.size("m", 1 << 20), k.size("n", 1 << 20), k.constant(16));
    let a = k.input("a", Element::F16, &[m, depth]);
    let b = k.input("b", Element::F16, &[depth, n]);
    let c = k.output("c", Element::F16, &[m, n]);
    let (i, j, zero) = (
        k.tiles(Axis::X, m, 32)?,
        k.tiles(Axis::Y, n, 8)?,
        k.constant(0),
    );
    // Warp w has rows 16·w to 16·w + 15 of the block's 32.
    let (warp, lane) = (k.warp(), k.lane());
    let first = k.scale(i, 2);
    let row = k.add(first, warp);
    let x = a
        .tile(&mut k, &[16, 16], &[row, zero])?
        .partition_a(&mut k, &mma, lane)?;
    let y = b
        .tile(&mut k, &[16, 8], &[zero, j])?
        .transposed()
        .partition_b(&mut k, &mma, lane)?;
    let (x, y) = (k.load_fragment(&x)?, k.load_fragment(&y)?);
    let sums = k.accumulators(&mma, [16, 8], lane)?;
    k.gemm(&mma, &x, &y, &sums)?;
    let sums = sums.map_at(&mut k, |k, value, [_, column]| {
        let column = U32::index(k, column).to_f32(k);
        value.fma(k, 2.0, column).max(k, 0.0)
    })?;
    let sums = k.convert_fragment(&sums, Element::F16)?;
    let c = c
        .tile(&mut k, &[16, 8], &[row, j])?
        .partition_c(&mut k, &mma, lane)?
        .vectors(&k, 2)?;
    k.store_fragment(&c, &sums)?;
    let kernel = k.build(Arch(80))?;

    for (m, n) in [(32, 8), (50, 13), (7, 30)] {
        let (a, b) = (integers(3, m * 16), integers(4, 16 * n));
        let of = |all: &[i32]| {
            let halves = all.iter().map(|&x| f16::from_f32(x as f32));
            halves.collect::<Vec<_>>()
        };
        let outcome = run(
            &kernel,
            On::Emulator,
            [
                ("m", Arg::from(m as u32)),
                ("n", Arg::from(n as u32)),
                ("a", Arg::input(&of(&a))),
                ("b", Arg::input(&of(&b))),
                ("c", Arg::output::<f16>(m * n)),
            ],
        )?;
        outcome.assert_clean();
        let c: Vec<f16> = outcome.get("c")?;
        for (at, c) in c.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let sum: i32 = (0..16).map(|t| a[i * 16 + t] * b[t * n + j]).sum();
            let wanted = (2 * sum + j as i32 % 8).max(0);
            assert_eq!(
                *c,
                f16::from_f32(wanted as f32),
                "{m}x{n}: row {i}, column {j}"
            );
        }
    }
    Ok(())
}

/// A shared tile of 16 x 16 halves.
fn tile(k: &mut Kernel) -> Result<View> {
    let row_major = tilewright::Swizzled::parse("(16,16):(16,1)")?;
    Ok(k.shared("tile", Element::F16, &row_major)?)
}

fn warp_copy(atom: CopyAtom) -> Result<TiledCopy> {
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    Ok(TiledCopy::for_operand(atom, &mma, Operand::A)?)
}

#[test]
fn what_does_not_fit_an_instruction_is_refused() -> Result {
    let mut k = Kernel::new("k", 32);
    let m = k.size("m", 1 << 20);
    let depth = k.constant(16);
    let x = k.input("x", Element::F16, &[m, depth]);
    let (i, lane, zero) = (k.tiles(Axis::X, m, 16)?, k.lane(), k.constant(0));
    let x = x.tile(&mut k, &[16, 16], &[i, zero])?;
    let tile = tile(&mut k)?;
    let refused = |result: std::result::Result<_, ViewError>| {
        result
            .map(|_: tilewright::codegen::view::Partition| ())
            .expect_err("refused")
            .to_string()
    };

    let matrices = warp_copy(LDMATRIX_X4)?;
    assert_eq!(
        refused(x.partition_s(&mut k, &matrices, lane)),
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 reads shared memory, and `x` is in global memory"
    );
    assert_eq!(
        refused(tile.partition_d(&mut k, &matrices, lane)),
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 writes registers, and `tile` is in shared memory"
    );
    // Rows of the matrices are columns of the tile.
    let torn = refused(tile.transposed().partition_s(&mut k, &matrices, lane));
    assert!(torn.contains("no run along the contiguous mode"), "{torn}");
    let across = warp_copy(LDMATRIX_X4_TRANS)?;
    assert!(tile.transposed().partition_s(&mut k, &across, lane).is_ok());

    let bytes = TiledCopy::new(
        atoms::CP_ASYNC_16,
        &Layout::parse("(32,1):(1,0)")?,
        &Layout::parse("(1,16):(0,1)")?,
    )?;
    assert_eq!(
        refused(tile.partition_d(&mut k, &bytes, lane)),
        "cp.async.cg.shared.global 16 counts elements of 8 bits, and those of `tile` have 16: recast the atom (`CopyAtom::recast`)"
    );
    let eight = Layout::parse("(1,8):(0,1)")?;
    let threads = Layout::parse("(16,2):(2,1)")?;
    let asynchronous = TiledCopy::new(atoms::CP_ASYNC_16.recast(16)?, &threads, &eight)?;
    let plain = TiledCopy::new(vector_copy(8, atoms::Scalar::F16, true)?, &threads, &eight)?;
    let from = x.partition_s(&mut k, &asynchronous, lane)?;
    let to = tile.partition_d(&mut k, &plain, lane)?;
    assert_eq!(
        k.copy(&from, &to)
            .expect_err("two instructions")
            .to_string(),
        "a copy from `x` (a tile of 16x16, 8 a thread) by asynchronous copies of 16 bytes to `tile` (a tile of 16x16, 8 a thread) by loads and stores: \
         partition both sides by one tiled copy from memory to memory"
    );
    assert!(k.load_fragment(&from).is_err());

    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let rows = tile.partition_s(&mut k, &matrices, lane)?;
    let (a, sums) = (
        k.load_fragment(&rows)?,
        k.accumulators(&mma, [16, 8], lane)?,
    );
    assert_eq!(
        k.gemm(&mma, &a, &a, &sums)
            .expect_err("B is 8 x 16")
            .to_string(),
        "B of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 is 8x16, not a fragment of 16x16 f16"
    );
    let bf16s = TiledMma::new(atoms::MMA_M16N8K16_BF16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let error = k.gemm(&bf16s, &a, &a, &sums).expect_err("another type");
    assert!(error.to_string().contains("elements of Bf16"), "{error}");
    Ok(())
}

#[test]
fn an_architecture_without_the_instruction_is_refused() -> Result {
    let built = |arch| -> Result<std::result::Result<Proven, ProofError>> {
        let mut k = Kernel::new("k", 32);
        k.commit_group();
        k.wait_group(0);
        Ok(k.build(Arch(arch)))
    };
    assert!(built(80)?.is_ok());
    let error = built(75)?.expect_err("no cp.async");
    assert_eq!(
        error.to_string(),
        "the kernel is not well-formed: it has asynchronous copies, which sm_75 does not have and sm_80 is the first to have: build it for that"
    );
    Ok(())
}
