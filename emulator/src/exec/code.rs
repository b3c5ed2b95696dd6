//! Row operations that are compiled twice, like the main loop: for every machine, and for one with AVX2 and FMA.
//!
//! The main loop holds the most frequent operations itself. The others are functions behind pointers, set when a warp starts to run; both versions of
//! each come from one body and give the same bits. Example: `cvt.rn.f32.u32` calls [`Code::convert`], which converts eight lanes an instruction with
//! AVX2 and four without.

use super::alu::{Row32, Row64};
use super::sums::Adder;
use super::warp::Warp;
use super::wgmma::Issued;
use super::{Context, Env};
use super::{
    atomics, calls, compare, convert, fp16, fp32, fp64, lmem, mem, mma, pack, sums, wgmma_product,
    wmma,
};
use crate::ir::{
    Access, Atom, Call, Cmp, CmpType, Convert, FloatMode, FloatOp, Mma, Reg, WmmaMemory,
    WmmaMultiply,
};
use crate::shared_data::SharedData;

/// Whether operations that are loops over rows for the sake of speed go lane by lane, by their definition: a browser has to load each of those loops.
/// For the same reason, functions of accesses are not inlined there (`cfg_attr` above them).
pub(super) const COMPACT: bool = cfg!(target_family = "wasm");

/// One version of the functions.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    /// How sums of products are computed.
    pub(crate) adder: Adder,
    /// Operations on f32 that are not in the main loop.
    pub(crate) float32: fn(FloatOp, FloatMode, [&Row32; 3]) -> Row32,
    /// Operations on f64.
    pub(crate) float64: fn(FloatOp, FloatMode, [&Row64; 3]) -> Row64,
    /// Operations on f16, or bf16 if the first flag says so, packed if the second does.
    pub(crate) float16: fn(FloatOp, bool, bool, FloatMode, [&Row32; 3]) -> Row32,
    /// Comparisons of 32-bit rows, of their upper halves if the last argument says so.
    pub(crate) compare32: fn(Cmp, CmpType, [&Row32; 2], bool) -> u32,
    /// Comparisons of 64-bit rows.
    pub(crate) compare64: fn(Cmp, CmpType, [&Row64; 2]) -> u32,
    /// `cvt`.
    pub(crate) convert: fn(&mut Warp, &Convert, u32),
    /// Loads and stores at generic and other addresses that are not in one state space.
    pub(crate) windows: fn(&Context<'_>, &mut Env, &mut Warp, usize, &Access, u32, bool),
    /// Loads and stores of local memory, of which one argument is the address.
    pub(crate) local: fn(&Context<'_>, &mut Env, &mut Warp, usize, &Access, u64, u32, bool),
    /// How a warp begins a block.
    pub(crate) start: fn(&mut Warp, &Context<'_>, [u32; 3]),
    /// `call` of a function by a split.
    pub(crate) enter: fn(&Context<'_>, &mut Env, &mut Warp, usize, &Call, u32, usize, u32),
    /// `ret`.
    pub(crate) ret: fn(&Context<'_>, &mut Env, &mut Warp, u32),
    /// `wmma.load` and `wmma.store`.
    pub(crate) wmma_memory: fn(&Context<'_>, &mut Env, &mut Warp, usize, &WmmaMemory, u32),
    /// `wmma.mma`.
    pub(crate) wmma_multiply: fn(&mut Warp, &WmmaMultiply, u32),
    /// `atom` and `red` of up to 64 bits.
    pub(crate) atom: fn(&Context<'_>, &mut Env, &mut Warp, usize, &Atom, u32),
    /// `mov` of several registers to one.
    pub(crate) pack: fn(&mut Warp, Reg, u8, &[Reg], u32),
    /// `mov` of one register to several.
    pub(crate) unpack: fn(&mut Warp, Reg, u8, &[Reg], u32),
    /// `mma.sync`.
    pub(crate) mma: fn(&mut Warp, &Mma, u32),
    /// The arithmetic of `wgmma`.
    pub(crate) wgmma: fn(&[Issued<'_>], &SharedData, &mut [Warp]),
}

/// Defines both versions of each function, and the two tables.
macro_rules! twice {
    ($($name:ident: fn($($arg:ident: $ty:ty),*) $(-> $ret:ty)?, $plain:expr, $simd:expr;)*) => {
        mod plain {
            use super::*;
            $(
                #[allow(clippy::too_many_arguments)] // an access is that much
                pub(super) fn $name($($arg: $ty),*) $(-> $ret)? { $plain }
            )*
        }

        #[cfg(target_arch = "x86_64")]
        mod simd {
            use super::*;
            $(
                #[allow(clippy::too_many_arguments)] // an access is that much
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
                pub(super) fn $name($($arg: $ty),*) $(-> $ret)? { $simd }
            )*
        }

        /// The version for every machine.
        pub(super) const PLAIN: Code = Code { adder: sums::add_plain, $($name: plain::$name),* };

        /// The version with the features of the fast main loop, which alone calls this.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
        pub(super) fn simd() -> Code {
            Code { adder: sums::add_simd, $($name: simd::$name),* }
        }
    };
}

twice! {
    float32: fn(f: FloatOp, mode: FloatMode, x: [&Row32; 3]) -> Row32,
        fp32::row::<false>(f, mode, x), fp32::row::<true>(f, mode, x);
    float64: fn(f: FloatOp, mode: FloatMode, x: [&Row64; 3]) -> Row64,
        fp64::row(f, mode, x), fp64::row(f, mode, x);
    float16: fn(f: FloatOp, bf16: bool, packed: bool, mode: FloatMode, x: [&Row32; 3]) -> Row32,
        fp16::row(f, bf16, packed, mode, x), fp16::row(f, bf16, packed, mode, x);
    compare32: fn(cmp: Cmp, ty: CmpType, x: [&Row32; 2], upper: bool) -> u32,
        compare::rows32(cmp, ty, x, upper), compare::rows32(cmp, ty, x, upper);
    compare64: fn(cmp: Cmp, ty: CmpType, x: [&Row64; 2]) -> u32,
        compare::rows64(cmp, ty, x), compare::rows64(cmp, ty, x);
    convert: fn(w: &mut Warp, c: &Convert, active: u32),
        convert::convert(w, c, active), convert::convert(w, c, active);
    windows: fn(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, a: &Access, active: u32, store: bool),
        mem::windows(cx, env, w, pc, a, active, store), mem::windows(cx, env, w, pc, a, active, store);
    local: fn(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, a: &Access, origin: u64, active: u32, store: bool),
        lmem::local(cx, env, w, pc, a, origin, active, store), lmem::local(cx, env, w, pc, a, origin, active, store);
    start: fn(w: &mut Warp, cx: &Context<'_>, ctaid: [u32; 3]),
        w.start(cx, ctaid), w.start(cx, ctaid);
    enter: fn(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, call: &Call, number: u32, split: usize, lanes: u32),
        calls::enter(cx, env, w, pc, call, number, split, lanes), calls::enter(cx, env, w, pc, call, number, split, lanes);
    ret: fn(cx: &Context<'_>, env: &mut Env, w: &mut Warp, active: u32),
        calls::ret(cx, env, w, active), calls::ret(cx, env, w, active);
    wmma_memory: fn(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, m: &WmmaMemory, active: u32),
        wmma::memory(cx, env, w, pc, m, active), wmma::memory(cx, env, w, pc, m, active);
    wmma_multiply: fn(w: &mut Warp, m: &WmmaMultiply, active: u32),
        wmma::multiply(w, m, active, sums::add_plain), wmma::multiply(w, m, active, sums::add_simd);
    atom: fn(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, a: &Atom, active: u32),
        atomics::atom(cx, env, w, pc, a, active), atomics::atom(cx, env, w, pc, a, active);
    pack: fn(w: &mut Warp, d: Reg, bits: u8, parts: &[Reg], active: u32),
        pack::pack(w, d, bits, parts, active), pack::pack(w, d, bits, parts, active);
    unpack: fn(w: &mut Warp, a: Reg, bits: u8, parts: &[Reg], active: u32),
        pack::unpack(w, a, bits, parts, active), pack::unpack(w, a, bits, parts, active);
    mma: fn(w: &mut Warp, m: &Mma, active: u32),
        mma::mma(w, m, active, sums::add_plain), mma::mma(w, m, active, sums::add_simd);
    wgmma: fn(chain: &[Issued<'_>], shared: &SharedData, warps: &mut [Warp]),
        wgmma_product::multiply(chain, shared, warps, sums::add_plain), wgmma_product::multiply(chain, shared, warps, sums::add_simd);
}
