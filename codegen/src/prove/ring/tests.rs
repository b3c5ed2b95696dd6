//! A stage is given back one use later: what must be complete then, and what the producer waits for.

use crate::Arch;
use crate::gemm::Operands;
use crate::ir::{Entry, Hopper, Inst, Node, Reg};
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

const PLANS: [&str; 2] = ["wgmma-f16-64x128x128", "wgmma-f16-128x256x64-persistent"];

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
