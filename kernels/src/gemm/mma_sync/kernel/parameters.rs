//! The kernel's parameters: addresses, sizes, the epilogue's values, and tensor maps behind them.

use layout_codegen::ir::ParamKind;

use crate::gemm::{Specialized, TileSchedule, epilogue, scalar_kind};

/// What a launch gives the kernel, in its order.
pub(in super::super) fn parameters(product: &Specialized) -> Vec<(String, ParamKind)> {
    let maps = |all: &mut Vec<_>| {
        if product.is_wgmma() {
            let names = ["A", "B", "B2"]
                .iter()
                .take(1 + product.variant.products as usize);
            all.extend(names.map(|p| ((*p).to_owned(), ParamKind::TensorMap)));
        }
    };
    let pointers = |names: &[&str]| -> Vec<_> {
        let names = names.iter().map(|p| (*p).to_owned());
        names.map(|p| (p, ParamKind::Pointer)).collect()
    };
    let sizes = |names: &[&str]| -> Vec<_> {
        let names = names.iter().map(|p| (*p).to_owned());
        names.map(|p| (p, ParamKind::U32)).collect()
    };
    let finish = product.finish();
    let mut all = Vec::new();
    if !product.is_wgmma() {
        all = pointers(&["A", "B"]);
        if product.variant.products == 2 {
            all.extend(pointers(&["B2"]));
        }
    }
    if product.partial() {
        all.extend(pointers(&["partial"]));
        all.extend(sizes(&["m", "n", "k", "lda", "ldb", "pitch", "chunk"]));
        let factor = finish.factor().map(str::to_owned);
        all.extend(factor.map(|name| (name, scalar_kind(product.scalar()))));
        maps(&mut all);
        return all;
    }
    all.extend(pointers(&["C"]));
    all.extend(epilogue::pointers(finish));
    all.extend(sizes(&["m", "n", "k", "lda", "ldb", "ldc"]));
    all.extend(epilogue::values(finish, product.scalar()));
    if product.variant.tiles == TileSchedule::Batch {
        all.extend(sizes(&["strideA", "strideB", "strideC"]));
    }
    maps(&mut all);
    all
}
