//! A stage is given back one use later: what must be complete then, and what the producer waits for.

use crate::Arch;
use crate::gemm::Operands;
use crate::ir::{Entry, Factor, Hopper, Inst, Node, Reg};
use crate::prove::prove;
use crate::registry::plan_named;

/// Every list of nodes, inner ones too.
fn lists(nodes: &mut Vec<Node>, f: &mut impl FnMut(&mut Vec<Node>)) {
    f(nodes);
    for node in nodes {
        match node {
            Node::If(b) => {
                lists(&mut b.then, f);
                lists(&mut b.otherwise, f);
            }
            Node::Loop(l) => lists(&mut l.body, f),
            Node::Roles(roles) => {
                for role in roles {
                    lists(&mut role.body, f);
                }
            }
            _ => {}
        }
    }
}

fn hopper(node: &mut Node) -> Option<&mut Hopper> {
    match node {
        Node::Inst(s) => match &mut s.inst {
            Inst::Hopper(h) => Some(h),
            _ => None,
        },
        _ => None,
    }
}

/// Where a list has an instruction of Hopper.
fn position(list: &mut [Node], is: fn(&Hopper) -> bool) -> Option<usize> {
    list.iter_mut()
        .position(|n| hopper(n).is_some_and(|h| is(h)))
}

/// The kernel of a plan that multiplies.
fn product(plan: &str) -> Entry {
    let plan = plan_named(plan).expect("listed");
    let nn = Operands::ALL[0];
    let mut entries = plan.entries(nn, Arch(90)).expect("it is built");
    let name = plan.entry_name(nn);
    let at = entries.iter().position(|e| e.name == name);
    entries.swap_remove(at.expect("the product"))
}

/// What the prover says of a kernel with one change.
fn with(plan: &str, change: impl FnOnce(&mut Entry)) -> Result<(), (String, String)> {
    let mut entry = product(plan);
    change(&mut entry);
    let proof = prove(&entry);
    proof
        .map(drop)
        .map_err(|e| (e.code().to_owned(), e.to_string()))
}

const SWAPPED: &str = "wgmma-tf32-256x128x32-swapped";

const PLANS: [&str; 3] = [
    "wgmma-f16-64x128x128",
    "wgmma-f16-128x256x64-persistent",
    SWAPPED,
];

/// The wait of the loop over k, which is before the arrival.
fn wait_of_the_loop(entry: &mut Entry, f: impl Fn(&mut Vec<Node>, usize)) {
    lists(&mut entry.nodes, &mut |list| {
        if position(list, |h| matches!(h, Hopper::Arrive { .. })).is_some()
            && let Some(i) = position(list, |h| matches!(h, Hopper::WgmmaWait { .. }))
        {
            f(list, i);
        }
    });
}

#[test]
fn the_kernels_keep_to_the_protocol() {
    for plan in PLANS {
        assert_eq!(product(plan).rings[0].lag, 1);
        assert_eq!(with(plan, |_| {}), Ok(()), "{plan}");
        // To wait for more is slower, and right.
        let all = |list: &mut Vec<Node>, i: usize| {
            if let Some(Hopper::WgmmaWait { pending }) = hopper(&mut list[i]) {
                *pending = 0;
            }
        };
        assert_eq!(with(plan, |e| wait_of_the_loop(e, all)), Ok(()), "{plan}");
    }
}

#[test]
fn a_stage_is_not_given_back_while_products_read_it() {
    for plan in PLANS {
        // One more group in flight: only the second turn of the loop shows it.
        let more = |list: &mut Vec<Node>, i: usize| {
            if let Some(Hopper::WgmmaWait { pending }) = hopper(&mut list[i]) {
                *pending = 2;
            }
        };
        let (code, text) = with(plan, |e| wait_of_the_loop(e, more)).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
        assert!(text.contains("before products that read it"), "{text}");
        // The arrival first, and then the wait.
        let late = |list: &mut Vec<Node>, i: usize| {
            let wait = list.remove(i);
            let arrive = position(list, |h| matches!(h, Hopper::Arrive { .. }));
            list.insert(arrive.expect("an arrival") + 1, wait);
        };
        let (code, text) = with(plan, |e| wait_of_the_loop(e, late)).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
        assert!(text.contains("before products that read it"), "{text}");
    }
}

#[test]
fn the_producer_waits_for_the_arrival_that_gives_its_stage_back() {
    for plan in PLANS {
        // The mbarriers are those of a lag of 1.
        for lag in [0, 2] {
            let (code, text) = with(plan, |e| e.rings[0].lag = lag).expect_err("refused");
            assert_eq!(code, "ring", "{text}");
        }
        // With as many as there are stages, the producer would wait for what it has not filled.
        let most = |e: &mut Entry| e.rings[0].lag = e.rings[0].stages;
        let (code, text) = with(plan, most).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
    }
}

#[test]
fn a_fragment_is_not_a_register_of_sums() {
    let plan = "wgmma-tf32-256x128x32-swapped";
    let change = |entry: &mut Entry| {
        let mut done = false;
        lists(&mut entry.nodes, &mut |list| {
            for node in list {
                if let Some(Hopper::Wgmma {
                    a: Factor::Fragment(a),
                    d,
                    ..
                }) = hopper(node)
                    && !done
                {
                    (a[0], done) = (d[0], true);
                }
            }
        });
        assert!(done, "no product takes a fragment");
    };
    let (code, text) = with(plan, change).expect_err("refused");
    assert_eq!(code, "in_flight", "{text}");
}

/// Every product of a kernel begins sums, or none does, as far as its predicates say.
fn all_products(entry: &mut Entry, begin: bool) {
    let mut known = None;
    let mut each = |f: &mut dyn FnMut(&mut bool, &mut Reg)| {
        lists(&mut entry.nodes, &mut |list| {
            for node in list {
                if let Some(Hopper::Wgmma { begins, add, .. }) = hopper(node) {
                    f(begins, add);
                }
            }
        });
    };
    each(&mut |begins, add| {
        if *begins == begin {
            known = Some(*add);
        }
    });
    let wanted = known.expect("a product of each kind");
    each(&mut |begins, add| (*begins, *add) = (begin, wanted));
}

#[test]
fn no_sum_is_lost_and_none_counts_twice() {
    let plan = "wgmma-e4m3-128x128x128-promoted";
    assert_eq!(with(plan, |_| {}), Ok(()));
    let (code, text) = with(plan, |e| all_products(e, true)).expect_err("refused");
    assert_eq!(code, "lost", "{text}");
    let (code, text) = with(plan, |e| all_products(e, false)).expect_err("refused");
    assert_eq!(code, "twice", "{text}");
}

/// The list of nodes of the loop in which a stage is read into registers.
fn loop_of_reads(entry: &mut Entry, f: impl Fn(&mut Vec<Node>)) {
    lists(&mut entry.nodes, &mut |list| {
        if position(list, |h| matches!(h, Hopper::Fetch { .. })).is_some() {
            f(list);
        }
    });
}

fn reads(list: &mut [Node]) -> Vec<usize> {
    let is = |n: &mut Node| matches!(hopper(n), Some(Hopper::Fetch { .. }));
    (0..list.len()).filter(|&i| is(&mut list[i])).collect()
}

/// What the prover says of the swapped kernel with a change to its loop.
fn refused(change: impl Fn(&mut Vec<Node>)) -> (String, String) {
    with(SWAPPED, |e| loop_of_reads(e, change)).expect_err("refused")
}

#[test]
fn a_stage_is_read_into_registers_while_it_is_held() {
    // Before it is full.
    let (code, text) = refused(|list| {
        let first = reads(list)[0];
        let read = list.remove(first);
        let wait = position(list, |h| matches!(h, Hopper::Wait { .. }));
        list.insert(wait.expect("a wait"), read);
    });
    assert_eq!(code, "ring", "{text}");
    assert!(text.contains("not known to be full"), "{text}");
    // The lane that gives it back does not know that the others have read.
    let (code, text) = refused(|list| {
        list.retain(|n| !matches!(n, Node::Inst(s) if matches!(s.inst, Inst::WarpBarrier)));
    });
    assert_eq!(code, "ring", "{text}");
    assert!(text.contains("barrier of the warp"), "{text}");
    // Part of what was filled is left where it is, and another part read twice.
    let (code, text) = refused(|list| {
        let all = reads(list);
        let Some(Hopper::Fetch { at: first, .. }) = hopper(&mut list[all[0]]).cloned() else {
            return;
        };
        if let Some(Hopper::Fetch { at, .. }) = hopper(&mut list[all[2]]) {
            *at = first;
        }
    });
    assert_eq!(code, "ring", "{text}");
    assert!(text.contains("filled and never read"), "{text}");
    // Nothing, so that a product reads registers without a value.
    let (code, text) = refused(|list| {
        let last = reads(list).pop().expect("a read");
        list.remove(last);
    });
    assert_eq!(code, "register", "{text}");
    // Another element than the layout has there.
    let (code, text) = refused(|list| {
        let first = reads(list)[0];
        if let Some(Hopper::Fetch { at, .. }) = hopper(&mut list[first]) {
            *at = at.moved(8);
        }
    });
    assert_eq!(code, "address", "{text}");
}

#[test]
fn fragments_are_left_alone_while_products_read_them() {
    // Once more into the registers of the product that was issued last.
    let (code, text) = refused(|list| {
        let all = reads(list);
        let again = list[all[0]].clone();
        list.insert(all[2], again);
    });
    assert_eq!(code, "in_flight", "{text}");
    // Read behind the fence.
    let (code, text) = refused(|list| {
        let first = reads(list)[0];
        let fence = position(list, |h| matches!(h, Hopper::WgmmaFence)).expect("a fence");
        let read = list.remove(first);
        list.insert(fence, read);
    });
    assert_eq!(code, "fence", "{text}");
}
