//! Kernels that may be launched while the grid before still runs (programmatic dependent launch): they touch no memory that it may write before they have waited
//! for it.
//!
//! ```text
//! mbarrier.init …            shared memory of the block's own: allowed
//! griddepcontrol.wait        by every thread that comes so far
//! cp.async.bulk.tensor …     allowed from here on
//! ```
//!
//! A kernel with a wait may be launched so; one without is launched when the grid before is complete, and nothing is asked of it.

use crate::ir::{BulkStore, Entry, Hopper, Inst, Node};
use crate::prove::ProofError;

/// Whether a kernel that waits for the grid before touches memory behind the wait alone.
pub(in crate::prove) fn waited(entry: &Entry) -> Result<(), ProofError> {
    let waits = entry.nodes.iter().position(is_wait);
    let (before, behind) = match waits {
        Some(at) => (&entry.nodes[..at], &entry.nodes[at + 1..]),
        None => (&[][..], &entry.nodes[..]),
    };
    if let Some(inst) = find(before, &|inst| touches(inst)) {
        return Err(ProofError::Early {
            instruction: name(inst).to_owned(),
        });
    }
    // One that only some threads come to, or come to again, keeps no other from going on.
    if let Some(inst) = find(behind, &|inst| waits.is_none() && is_grid_wait(inst)) {
        return Err(ProofError::Divergent {
            what: format!("{} in a branch, a loop or a role", name(inst)),
        });
    }
    Ok(())
}

fn is_grid_wait(inst: &Inst) -> bool {
    matches!(inst, Inst::Hopper(h) if **h == Hopper::WaitForGrid)
}

/// A wait of all threads, outside of branches, loops and roles.
fn is_wait(node: &Node) -> bool {
    matches!(node, Node::Inst(s) if s.guard.is_none() && is_grid_wait(&s.inst))
}

/// Whether an instruction reads or writes memory. Parameters are the launch's own, and mbarriers are made in shared memory.
fn touches(inst: &Inst) -> bool {
    match inst {
        Inst::Load { .. } | Inst::Store { .. } | Inst::CopyAsync { .. } => true,
        Inst::Hopper(h) => matches!(
            **h,
            Hopper::TensorCopy { .. } | Hopper::Bulk(BulkStore::Box { .. })
        ),
        _ => false,
    }
}

fn name(inst: &Inst) -> &'static str {
    match inst {
        Inst::Load { .. } => "a load",
        Inst::Store { .. } => "a store",
        Inst::CopyAsync { .. } => "an asynchronous copy",
        Inst::Hopper(_) if touches(inst) => "a copy by TMA",
        _ => "griddepcontrol.wait",
    }
}

/// The first instruction that `is`, inner ones too.
fn find<'n>(nodes: &'n [Node], is: &impl Fn(&Inst) -> bool) -> Option<&'n Inst> {
    nodes.iter().find_map(|node| match node {
        Node::Inst(s) => Some(&s.inst).filter(|inst| is(inst)),
        Node::If(b) => find(&b.then, is).or_else(|| find(&b.otherwise, is)),
        Node::Loop(l) => find(&l.entry, is).or_else(|| find(&l.body, is)),
        Node::Roles(roles) => roles.iter().find_map(|role| find(&role.body, is)),
        Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use crate::ir::{Cmp, Element, Entry, Kernel};
    use crate::prove::ProofError;
    use crate::prove::prove;
    use layout_core::Layout;

    /// y = x, 128 elements a block, that waits where it is told to.
    fn copy(waits: impl Fn(&mut Kernel, usize)) -> Entry {
        let mut k = Kernel::new("copy", 128);
        let n = k.size("n", 1000);
        let (x, y) = (
            k.input("x", Element::F32, &[n]),
            k.output("y", Element::F32, &[n]),
        );
        waits(&mut k, 0);
        let block = k.tiles(crate::ir::Axis::X, n, 128).expect("tiles");
        let (thread, one) = (
            k.thread(),
            Layout::parse("(128,1):(1,0)").expect("a layout"),
        );
        let [x, y] = [x, y].map(|v| {
            let tile = v.tile(&mut k, &[128], &[block]).expect("a tile");
            tile.partition(&mut k, &one, thread).expect("a partition")
        });
        k.copy(&x, &y).expect("a copy");
        waits(&mut k, 1);
        k.finish()
    }

    #[test]
    fn a_kernel_waits_before_it_touches_memory() {
        let at = |place: usize| {
            copy(move |k, here| {
                if here == place {
                    k.wait_for_grid();
                }
            })
        };
        assert_eq!(prove(&at(0)).map(|p| p.covered), Ok(vec!["y".to_owned()]));
        assert_eq!(
            prove(&at(1)).map(|p| p.covered),
            Err(ProofError::Early {
                instruction: "a load".to_owned()
            })
        );
        // Without a wait it is launched behind the grid before.
        assert!(prove(&at(2)).is_ok());
    }

    #[test]
    fn all_threads_wait() {
        let some = copy(|k, here| {
            if here == 0 {
                let (thread, half) = (k.thread(), k.pool.constant(64));
                let lower = k.compare(Cmp::Lt, thread, half);
                k.begin_if(lower, false);
                k.wait_for_grid();
                k.end_if();
            }
        });
        let error = prove(&some).map(|p| p.covered);
        assert_eq!(error.map_err(|e| e.code()), Err("divergent"));
    }
}
