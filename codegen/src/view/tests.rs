//! What the public layer cannot say, said with its parts: the prover refuses it.

use layout_core::Layout;

use crate::Arch;
use crate::ir::{Axis, Class, Element, Kernel, Type};
use crate::prove::ProofError;

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
    let zero = k.reg(Class::F32);
    k.set(Type::F32, zero, 0.0f32);
    if guarded {
        let share = tile.partition(&mut k, &one, thread).expect("a partition");
        let (element, registers) = (Element::F32, vec![zero]);
        let values = super::Values { element, registers };
        k.store_tile(&share, &values).expect("one value");
    } else {
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
