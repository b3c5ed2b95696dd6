//! What the tables of instructions refuse.

use layout_core::atoms::tcgen05::{
    CtaGroup, Major, SmemSwizzle, TmemShape, accumulator, smem_operand, smem_operand_strided,
    tmem_copy,
};
use layout_core::atoms::{
    self, CopyAtom, MmaAtom, Scalar, SparseMmaAtom, Target, addresses_for, mma_f8f6f4, vector_copy,
    wgmma, wgmma_d,
};

use crate::table::{Table, cases, l};

pub(crate) fn refusals(table: &mut Table) {
    copies(table);
    products(table);
    tcgen05(table);
}

fn copies(table: &mut Table) {
    let copy = |bits, src: &str, dst: &str, matrix| {
        CopyAtom::new("copy", bits, l(src), l(dst), false, matrix, Target::Sm(50))
    };
    let lanes = "(32,4):(4,1)";
    cases! { table;
        copy(8, lanes, "(16,8):(8,1)", [1, 128]) =>
            "invalid_parameter", "a copy atom: the number of threads of the destination is 16; use 32";
        copy(0, lanes, lanes, [1, 128]) =>
            "invalid_parameter", "a copy atom: the width of an element in bits is 0; use 1 to 128";
        copy(8, lanes, "(32,4):(4,2)", [1, 128]) =>
            "unsupported", "a copy atom: a pair of layouts that do not hold the same elements once each is not supported; use layouts (thread, value) -> element of one block";
        copy(8, lanes, lanes, [3, 5]) =>
            "invalid_parameter", "a copy atom: the number of elements is 128; use a multiple of the rows times the columns of a matrix, both at least 1";
        atoms::LDMATRIX_X4_TRANS.recast(8) =>
            "invalid_parameter", "recast of a copy atom: the width of an element in bits is 8; use a width at which no element is torn apart between threads";
        atoms::LDMATRIX_X4_TRANS.recast(0) =>
            "invalid_parameter", "recast: new_bits is 0; use at least 1";
        atoms::LDMATRIX_M16N16_X1_B6.recast(16) =>
            "unsupported", "recast of a copy atom: ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32 is not supported; use a copy that does not widen its elements";
        vector_copy(0, Scalar::F32, false) =>
            "invalid_parameter", "a vector copy: the number of values is 0; use at least 1";
        vector_copy(3, Scalar::F32, false) =>
            "invalid_parameter", "a vector copy: the width of the vector in bits is 96; use 8, 16, 32, 64 or 128";
        addresses_for(&atoms::LDMATRIX_X4, &l("(16,8):(8,1)")) =>
            "invalid_parameter", "ldmatrix.sync.aligned.m8n8.x4.shared.b16: the number of threads of the fragment is 16; use 32";
        addresses_for(&atoms::LDMATRIX_X4, &l("(32,4):(4,1)")) =>
            "invalid_parameter", "ldmatrix.sync.aligned.m8n8.x4.shared.b16: the number of values of the fragment is 4; use 8";
    }
}

fn products(table: &mut Table) {
    let tiny = |a: &str, b: &str, c: &str| {
        MmaAtom::new(
            "tiny",
            [2, 2, 1],
            [Scalar::F32; 3],
            [l(a), l(b), l(c)],
            Target::Sm(50),
        )
    };
    let (a, b, c) = ("((2,2),1):((1,0),0)", "((2,2),1):((0,1),0)", "(4,1):(1,0)");
    let good = tiny(a, b, c).unwrap();
    let sparse = *atoms::SPARSE_MMA_ATOMS[0];
    let with = |chunk, metadata, providers| {
        SparseMmaAtom::new(sparse.mma, false, chunk, metadata, providers)
    };
    let chunk = [sparse.chunk, sparse.unit];
    let mut broken = sparse;
    broken.metadata = l("(8,1):(0,0)");
    cases! { table;
        tiny("(2,2,1):(1,0,0)", b, c) =>
            "rank_mismatch", "the layout (thread, value) of an mma atom's operand has rank 3; give it 2 modes";
        tiny(a, "(2,1):(1,0)", c) =>
            "invalid_parameter", "operand B of an mma atom: the number of threads is 2; use 4";
        tiny("(4,1):(0,0)", b, c) =>
            "unsupported", "an mma atom: a layout of A or B that misses elements of the matrix or has others is not supported; use layouts (thread, value) -> row + ROWS*column + ROWS*COLUMNS*block";
        tiny(a, b, "(4,1):(0,0)") =>
            "unsupported", "an mma atom: a layout of C or D that does not hold each element exactly once is not supported; use layouts (thread, value) -> row + ROWS*column + ROWS*COLUMNS*block";
        good.with_slots([16; 4]) =>
            "invalid_parameter", "operand A of an mma atom: the width of a slot in bits is 16; use 32 to 64";
        good.with_blocks(0, [good.a, good.b, good.c]) =>
            "invalid_parameter", "an mma atom: the number of blocks is 0; use 1 to 1048576";
        mma_f8f6f4(Scalar::F32, Scalar::E4m3, Scalar::F32) =>
            "unsupported", "mma.sync of kind::f8f6f4: f32 is not supported; use e4m3, e5m2, e3m2, e2m3 or e2m1";
        mma_f8f6f4(Scalar::E4m3, Scalar::E4m3, Scalar::S32) =>
            "unsupported", "mma.sync of kind::f8f6f4: s32 is not supported; use f32 or f16 as accumulator";
        wgmma_d(12) =>
            "invalid_parameter", "wgmma: n is 12; use a multiple of 8 from 8 to 256";
        wgmma(64, Scalar::F64, Scalar::F32) =>
            "unsupported", "wgmma: f64 is not supported; use f16 into f16 or f32; bf16 or tf32 into f32; e4m3 or e5m2 into f16 or f32; s8 or u8 into s32";
        wgmma(40, Scalar::S8, Scalar::S32) =>
            "invalid_parameter", "wgmma of s8 or u8: n is 40; use 8, 16, 24, 32 or a multiple of 16 up to 256";
        with([3, 1], sparse.metadata, sparse.providers) =>
            "invalid_parameter", "a sparse mma atom: the chunk is 3; use a divisor of K that is twice a multiple of the unit";
        with(chunk, l("(4,4):(4,1)"), sparse.providers) =>
            "unsupported", "a sparse mma atom: metadata that has not exactly one field for each chunk is not supported; use a bijective layout (provider, field) -> row + M*chunk";
        with(chunk, sparse.metadata, l("(1,3):(0,1)")) =>
            "unsupported", "a sparse mma atom: a layout of providers that does not name a lane for each provider of the metadata is not supported; use a layout (selector, provider) -> lane";
        sparse.metadata_of(-1, 0, 0) =>
            "invalid_parameter", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: the row is -1; use 0 to 15";
        broken.metadata_of(1, 0, 0) =>
            "unsupported", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: metadata without a field for this row and chunk is not supported; use an atom that `checked` accepts";
    }
}

fn tcgen05(table: &mut Table) {
    let k = |swizzle, bits, mn, k| smem_operand(Major::K, swizzle, bits, mn, k);
    let mn = |swizzle, bits, mn, k| smem_operand(Major::Mn, swizzle, bits, mn, k);
    cases! { table;
        k(SmemSwizzle::None, 6, 64, 64) =>
            "invalid_parameter", "a tcgen05 operand in shared memory: the width of an element in bits is 6; use 4, 8, 16 or 32 (elements of 6 bits lie in 8)";
        k(SmemSwizzle::B128Atom32, 16, 64, 64) =>
            "unsupported", "a tcgen05 operand in shared memory: the 128-byte swizzle in units of 32 bytes of a K-major operand is not supported; use none, 32B, 64B or 128B";
        mn(SmemSwizzle::B128, 4, 64, 64) =>
            "unsupported", "a tcgen05 operand in shared memory: an MN-major operand of 4 bits is not supported; use a K-major one";
        mn(SmemSwizzle::B128Atom32, 16, 64, 64) =>
            "unsupported", "a tcgen05 operand in shared memory: the 128-byte swizzle in units of 32 bytes of elements of 8 or 16 bits is not supported; use none, 32B, 64B or 128B";
        mn(SmemSwizzle::B128, 32, 64, 64) =>
            "unsupported", "a tcgen05 operand in shared memory: this swizzle of an MN-major operand of 32 bits is not supported; use the 128-byte swizzle in units of 32 bytes";
        k(SmemSwizzle::None, 16, 12, 64) =>
            "not_divisible", "a tcgen05 operand in shared memory: the number of rows is 12; use a multiple of 8";
        k(SmemSwizzle::None, 16, 64, 12) =>
            "not_divisible", "a tcgen05 operand in shared memory: k is 12; use a multiple of 8";
        k(SmemSwizzle::B128, 16, 64, 128) =>
            "invalid_parameter", "a tcgen05 operand in shared memory: k in one descriptor of this swizzle is 128; use 8 to 64";
        mn(SmemSwizzle::B128, 16, 96, 64) =>
            "not_divisible", "a tcgen05 operand in shared memory: the number of rows is 96; use a multiple of 64";
        mn(SmemSwizzle::B128, 16, 64, 12) =>
            "not_divisible", "a tcgen05 operand in shared memory: k is 12; use a multiple of 8";
        smem_operand_strided(Major::K, SmemSwizzle::B128, 16, 64, 64, 16, 8) =>
            "invalid_parameter", "a tcgen05 operand in shared memory: the stride dimension byte offset is 8; use a multiple of 16 from 0 to 262128";
        accumulator(CtaGroup::One, 128, 12) =>
            "invalid_parameter", "the accumulator of tcgen05.mma: N is 12; use a multiple of 8 from 8 to 256";
        accumulator(CtaGroup::OneWs, 128, 192) =>
            "invalid_parameter", "the accumulator of tcgen05.mma: N is 192; use 64, 128 or 256";
        accumulator(CtaGroup::Two, 64, 64) =>
            "invalid_parameter", "the accumulator of tcgen05.mma: M is 64; use 128 or 256";
        tmem_copy(TmemShape::L32x32b, 3, 0) =>
            "invalid_parameter", "tcgen05.ld or tcgen05.st: the repeat is 3; use a power of 2 from 1 to 128";
        tmem_copy(TmemShape::L16x32bx2, 4, 2) =>
            "invalid_parameter", "tcgen05.ld or tcgen05.st: the half split in columns is 2; use 4 to 508";
        tmem_copy(TmemShape::L32x32b, 4, 2) =>
            "invalid_parameter", "tcgen05.ld or tcgen05.st: the half split in columns is 2; use 0: only .16x32bx2 has halves";
    }
}
