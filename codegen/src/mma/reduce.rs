//! Partial sums to C: the second kernel of split sums.
//!
//! The parts are added in their order, so that the result is the same in every run; then comes the epilogue as in any other kernel.
//!
//! ```text
//! partial   (part, row, column) : (m·pitch, pitch, 1)      pitch: n rounded up to 16 bytes
//! block     (row, c)            : a thread has one vector of columns
//! ```

use layout_core::Layout;

use super::finish::{Finish, Place, scalar_text};
use super::kernel::Bias;
use super::{LIMIT, MmaPlan, scalar_kind};
use crate::index::layout::{combined_index, index};
use crate::plan::{self, Gemm, Operands, PlanError};
use crate::ptx::{Kernel, ParamKind, Space};

/// Threads of a block.
pub(super) const THREADS: u32 = 128;

/// The name of the kernel, from that of the product's.
pub(super) fn entry_name(product: &str) -> String {
    format!("{product}_reduce")
}

/// The parameters, in order.
pub(super) fn parameters(plan: &MmaPlan) -> Vec<(&'static str, ParamKind)> {
    let mut all: Vec<_> = ["partial", "C"].map(|p| (p, ParamKind::Pointer)).into();
    if plan.variant.epilogue.bias != plan::Bias::None {
        all.push(("bias", ParamKind::Pointer));
    }
    all.extend(["m", "n", "parts", "pitch", "ldc"].map(|p| (p, ParamKind::U32)));
    let scalar = scalar_kind(plan.data_type.scalar());
    all.extend(["alpha", "beta"].map(|p| (p, scalar)));
    all
}

/// Elements of a row of partial sums.
pub(super) fn pitch(plan: &MmaPlan, n: u64) -> u64 {
    n.next_multiple_of(16 / u64::from(plan.data_type.scalar().bytes()))
}

/// Elements of C that a thread has.
fn vector(plan: &MmaPlan) -> i64 {
    let sums = 16 / i64::from(plan.data_type.scalar().bytes());
    (plan.variant.store / i64::from(plan.variant.output.bytes())).min(sums)
}

/// Columns of C that a block has.
pub(super) fn columns_of_a_block(plan: &MmaPlan) -> u64 {
    u64::from(THREADS) * vector(plan) as u64
}

/// Blocks: rows along x, columns along y.
pub(super) fn grid(plan: &MmaPlan, problem: &Gemm) -> [u32; 3] {
    let across = problem.n.div_ceil(columns_of_a_block(plan));
    [problem.m as u32, across as u32, 1]
}

/// The kernel.
pub(super) fn kernel(plan: &MmaPlan, operands: Operands) -> Result<Kernel, PlanError> {
    let hi = LIMIT as i64;
    let name = entry_name(&super::kernel::entry_name(*plan, operands));
    let mut k = Kernel::new(&name);
    k.describe(format!("{name}: partial sums to C"));
    k.directive(format!(".maxntid {THREADS}, 1, 1"));
    let (partial, c) = (k.param_pointer("partial"), k.param_pointer("C"));
    let bias = (plan.variant.epilogue.bias != plan::Bias::None).then(|| k.param_pointer("bias"));
    let [m, n, parts, pitch, ldc] = [
        ("m", hi),
        ("n", hi),
        ("parts", 65_535),
        ("pitch", hi),
        ("ldc", hi),
    ]
    .map(|(p, hi)| k.param_u32(p, hi));
    let scalar = plan.data_type.scalar();
    let finish = Finish::new(&mut k, plan);
    let (class, suffix, zero_text) = scalar_text(scalar);
    let each = vector(plan);
    let row = k.special("%ctaid.x", hi);
    let across = k.special("%ctaid.y", 65_534);
    let tid = k.special("%tid.x", i64::from(THREADS) - 1);
    let columns = Layout::flat(&[i64::from(THREADS), 1], &[each, each * i64::from(THREADS)])?;
    let col = index(&mut k.pool, &columns, &[tid, across])?;
    let matrix = |k: &mut Kernel, base, ld, bytes: i64| -> Result<_, PlanError> {
        let terms = [
            (None, Layout::flat(&[1, 1], &[0, bytes])?),
            (Some(ld), Layout::flat(&[1, 1], &[bytes, 0])?),
        ];
        let e = combined_index(&mut k.pool, &terms, &[row, col])?;
        Ok(k.pool.add(base, e))
    };
    let source = matrix(&mut k, partial, pitch, scalar.bytes().into())?;
    let target = matrix(&mut k, c, ldc, plan.variant.output.bytes().into())?;
    let target = k.pool.pin(target);
    // From one part to the next: a matrix of m rows.
    let part = {
        let unit = Layout::mode(1, scalar.bytes().into())?;
        let rows = combined_index(&mut k.pool, &[(Some(pitch), unit)], &[m])?;
        k.pool.pin(rows)
    };

    let sums = k.regs(class, each as usize);
    for s in &sums {
        k.ins(format!("mov.{suffix} {s}, {zero_text}"));
    }
    let done = k.label("done");
    let left = k.pool.sub(n, col);
    let inside = k.compare_here("gt", left, 0, None);
    k.branch(Some(crate::ptx::Pred::from(inside).not()), &done, false);
    let turn = k.open_loop("part", 0, 1, 65_535);
    let moved = k.pool.mul(part, turn.counter);
    let at = k.pool.add(source, moved);
    let at = k.address(Space::Global, at);
    let terms = k.regs(class, each as usize);
    k.load(None, "", suffix, &terms, at);
    let add = match suffix {
        "b32" => "add.s32".to_owned(),
        _ => format!("add.{suffix}"),
    };
    for (s, t) in sums.iter().zip(&terms) {
        k.ins(format!("{add} {s}, {s}, {t}"));
    }
    k.close_loop(&turn, parts);

    let target = k.address(Space::Global, target);
    let whole = (each > 1).then(|| k.compare_here("ge", left, each, None));
    let bias = Bias::new(&plan.variant, bias);
    let values = match bias.by_row(&mut k, &finish, row)? {
        Some(value) => vec![value],
        None => bias.by_column(&mut k, &finish, col, left, each)?,
    };
    let place = Place {
        target,
        row: inside,
        whole,
        left,
    };
    finish.update(&mut k, &sums, &values, &place);
    k.place(&done);
    k.ins("ret");
    Ok(k)
}
