//! A stage is released one use later: what must be complete then, and what the producer waits for.

use crate::Arch;
use crate::gemm::{Config, Operands};
use crate::ir::{Entry, Factor, Hopper, Inst, Node, OrderArrival, Reg, Side};
use crate::prove::prove;

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
fn position(list: &mut [Node], is: impl Fn(&Hopper) -> bool) -> Option<usize> {
    list.iter_mut()
        .position(|n| hopper(n).is_some_and(|h| is(h)))
}

/// The kernel of a plan that multiplies.
fn product(plan: &str) -> Entry {
    let plan = plan.parse::<Config>().expect("listed").kernel();
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

const SWAPPED: &str = "wgmma-tf32-256x128x32+swapab";

const PLANS: [&str; 3] = [
    "wgmma-f16-64x128x128",
    "wgmma-f16-128x256x64+persistent",
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
        // One more group in flight: only the second iteration of the loop shows it.
        let more = |list: &mut Vec<Node>, i: usize| {
            if let Some(Hopper::WgmmaWait { pending }) = hopper(&mut list[i]) {
                *pending = 2;
            }
        };
        let (code, text) = with(plan, |e| wait_of_the_loop(e, more)).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
        assert!(text.contains("before MMAs that read it"), "{text}");
        // The arrival first, and then the wait.
        let late = |list: &mut Vec<Node>, i: usize| {
            let wait = list.remove(i);
            let arrive = position(list, |h| matches!(h, Hopper::Arrive { .. }));
            list.insert(arrive.expect("an arrival") + 1, wait);
        };
        let (code, text) = with(plan, |e| wait_of_the_loop(e, late)).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
        assert!(text.contains("before MMAs that read it"), "{text}");
    }
}

#[test]
fn the_producer_waits_for_the_arrival_that_releases_its_stage() {
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
    let plan = "wgmma-tf32-256x128x32+swapab";
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
    let plan = "wgmma-e4m3-128x128x128+promoted";
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
    // The lane that releases it does not know that the others have read.
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

const PING_PONG: &str = "wgmma-f16-256x128x64+pingpong";

/// What the prover says of the kernel with a ping-pong schedule, with a change to the nodes of a consumer.
fn refused_run(change: impl Fn(&mut Vec<Node>, usize)) -> String {
    refused_run_of(PING_PONG, change)
}

fn refused_run_of(plan: &str, change: impl Fn(&mut Vec<Node>, usize)) -> String {
    let each = |e: &mut Entry| {
        let mut which = 0;
        lists(&mut e.nodes, &mut |list| {
            if position(list, |h| matches!(h, Hopper::Pass { .. })).is_some() {
                change(list, which);
                which += 1;
            }
        });
        assert_eq!(which, 2, "two roles in the schedule");
    };
    let (code, text) = with(plan, each).expect_err("refused");
    assert_eq!(code, "ring", "{text}");
    text
}

fn is_order(h: &Hopper) -> bool {
    matches!(
        h,
        Hopper::Wait {
            side: Side::Order(_),
            ..
        }
    )
}

#[test]
fn roles_read_in_the_order_of_the_fills() {
    let entry = product(PING_PONG);
    assert_eq!(
        (entry.rings[0].ordered_roles, entry.rings[0].consumers),
        (2, 4)
    );
    assert_eq!(with(PING_PONG, |_| {}), Ok(()));
    // Without the wait, without the arrival, and with an arrival before MMAs are complete.
    let text = refused_run(|list, _| {
        let wait = position(list, is_order).expect("a wait");
        list.remove(wait);
    });
    assert!(
        text.contains("outside of its phase of the order barrier"),
        "{text}"
    );
    let text = refused_run(|list, _| {
        let pass = position(list, |h| matches!(h, Hopper::Pass { .. }));
        list.remove(pass.expect("an end"));
    });
    assert!(text.contains("for a part of a loop's iterations"), "{text}");
    let text = refused_run(|list, _| {
        let wait = position(list, |h| matches!(h, Hopper::WgmmaWait { .. })).expect("a wait");
        let pass = position(list, |h| matches!(h, Hopper::Pass { .. })).expect("an end");
        assert!(wait < pass);
        list.swap(wait, pass);
    });
    assert!(text.contains("before MMAs that read stages"), "{text}");
    // Behind the run.
    let text = refused_run(|list, _| {
        let pass = position(list, |h| matches!(h, Hopper::Pass { .. })).expect("an end");
        let wait = position(list, is_order).expect("a wait");
        let pass = list.remove(pass);
        list.insert(wait + 1, pass);
    });
    assert!(
        text.contains("outside of its phase of the order barrier"),
        "{text}"
    );
}

#[test]
fn every_role_has_its_order_barrier() {
    // Both roles take those of the first: one waits for a phase that is another's.
    let text = refused_run(|list, which| {
        let wait = position(list, is_order).expect("a wait");
        if let Some(Hopper::Wait { side, .. }) = hopper(&mut list[wait])
            && which == 1
        {
            *side = Side::Order(0);
        }
    });
    assert!(
        text.contains("an mbarrier is not that of its stage"),
        "{text}"
    );
    // The ring says that all consumers read each stage, or that there are more of them.
    for ordered_roles in [1, 3] {
        let (code, text) =
            with(PING_PONG, |e| e.rings[0].ordered_roles = ordered_roles).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
    }
    // Half as many threads arrive as the order barrier counts.
    let (code, text) = with(PING_PONG, |e| e.rings[0].consumers *= 2).expect_err("refused");
    assert_eq!(code, "ring", "{text}");
}

#[test]
fn runs_are_filled_in_the_order_of_roles() {
    let exchanged = |e: &mut Entry| {
        lists(&mut e.nodes, &mut |list| {
            let fills = |n: &Node| {
                let Node::Loop(l) = n else { return false };
                let copies = |n: &Node| matches!(n, Node::Inst(s) if matches!(&s.inst, Inst::Hopper(h) if matches!(**h, Hopper::TensorCopy { .. })));
                l.body.iter().any(copies)
            };
            let all: Vec<usize> = (0..list.len()).filter(|&i| fills(&list[i])).collect();
            if let [first, second] = all[..] {
                list.swap(first, second);
            }
        });
    };
    let (code, text) = with(PING_PONG, exchanged).expect_err("refused");
    assert_eq!(code, "ring", "{text}");
    assert!(text.contains("first use in a loop"), "{text}");
}

#[test]
fn a_role_arrives_once() {
    let pass_of = |e: &mut Entry| {
        let mut found = None;
        lists(&mut e.nodes, &mut |list| {
            if let Some(i) = position(list, |h| matches!(h, Hopper::Pass { .. })) {
                found.get_or_insert(list[i].clone());
            }
        });
        found.expect("an arrival")
    };
    // Behind each stage of a run, whose products are complete.
    let (code, text) = with(PING_PONG, |e| {
        let pass = pass_of(e);
        lists(&mut e.nodes, &mut |list| {
            if position(list, |h| matches!(h, Hopper::Wgmma { .. })).is_some() {
                let wait = position(list, |h| matches!(h, Hopper::WgmmaWait { .. }));
                if let Some(Hopper::WgmmaWait { pending }) =
                    hopper(&mut list[wait.expect("a wait")])
                {
                    *pending = 0;
                }
                let arrive = position(list, |h| matches!(h, Hopper::Arrive { .. }));
                let guard = match &list[arrive.expect("an arrival")] {
                    Node::Inst(s) => s.guard,
                    _ => None,
                };
                if let (Node::Inst(mut s), guard) = (pass.clone(), guard) {
                    s.guard = guard;
                    list.push(Node::Inst(s));
                }
            }
        });
    })
    .expect_err("refused");
    assert_eq!(code, "ring", "{text}");
    assert!(text.contains("for a part of a loop's iterations"), "{text}");
    // By the role that fills.
    let (code, text) = with(PING_PONG, |e| {
        let pass = pass_of(e);
        lists(&mut e.nodes, &mut |list| {
            if position(list, |h| matches!(h, Hopper::TensorCopy { .. })).is_some() {
                list.push(pass.clone());
            }
        });
    })
    .expect_err("refused");
    assert!(
        ["ring", "register"].contains(&code.as_str()),
        "{code}: {text}"
    );
}

const OVERLAPPING: &str = "wgmma-e4m3-256x144x128+pingpong+linear";

fn arrives_in_order(what: OrderArrival) -> impl Fn(&Hopper) -> bool {
    move |h| matches!(h, Hopper::Pass { what: passed, .. } if *passed == what)
}

#[test]
fn runs_overlap_while_mmas_are_in_flight() {
    let entry = product(OVERLAPPING);
    assert!(entry.rings[0].overlaps && !product(PING_PONG).rings[0].overlaps);
    assert_eq!(with(OVERLAPPING, |_| {}), Ok(()));
    // The ring says that they do not overlap, and a role arrives while MMAs are in flight; or that they do, and no role says when MMAs are complete.
    let (code, text) = with(OVERLAPPING, |e| e.rings[0].overlaps = false).expect_err("refused");
    assert_eq!(code, "ring", "{text}");
    let (code, text) = with(PING_PONG, |e| e.rings[0].overlaps = true).expect_err("refused");
    assert_eq!(code, "ring", "{text}");
    // The arrival behind MMAs comes before they are complete, never, or before that on the order barrier.
    let text = refused_run_of(OVERLAPPING, |list, _| {
        let wait = position(list, |h| matches!(h, Hopper::WgmmaWait { .. })).expect("a wait");
        let pass = position(list, arrives_in_order(OrderArrival::Complete)).expect("an end");
        assert!(wait < pass);
        list.swap(wait, pass);
    });
    assert!(text.contains("before those that read stages"), "{text}");
    let text = refused_run_of(OVERLAPPING, |list, _| {
        let pass = position(list, arrives_in_order(OrderArrival::Complete)).expect("an end");
        list.remove(pass);
    });
    assert!(text.contains("never arrives behind its MMAs"), "{text}");
    let text = refused_run_of(OVERLAPPING, |list, _| {
        let order = position(list, arrives_in_order(OrderArrival::Order)).expect("an end");
        let products = position(list, arrives_in_order(OrderArrival::Complete)).expect("an end");
        list.swap(order, products);
    });
    assert!(
        text.contains("before it arrives on the order barrier"),
        "{text}"
    );
}

#[test]
fn stages_are_released_behind_the_mmas_of_the_run_before() {
    let waits = |h: &Hopper| {
        matches!(
            h,
            Hopper::Wait {
                side: Side::Complete(_),
                ..
            }
        )
    };
    let without = |how: &dyn Fn(&mut Vec<Node>, usize)| {
        let each = |e: &mut Entry| {
            let mut changed = 0;
            lists(&mut e.nodes, &mut |list| {
                if let Some(wait) = position(list, waits) {
                    how(list, wait);
                    changed += 1;
                }
            });
            assert_eq!(changed, 2, "two roles wait");
        };
        let (code, text) = with(OVERLAPPING, each).expect_err("refused");
        assert_eq!(code, "ring", "{text}");
        assert!(
            text.contains("before the MMAs of the phase before"),
            "{text}"
        );
    };
    without(&|list, wait| {
        list.remove(wait);
    });
    without(&|list, wait| {
        let arrive = position(list, |h| matches!(h, Hopper::Arrive { .. })).expect("an arrival");
        assert!(wait < arrive);
        list.swap(wait, arrive);
    });
    // For those of another run: two later, whose phase has the same parity.
    let another = |e: &mut Entry| {
        let pool = &mut e.pool;
        let two = pool.constant(2);
        let mut changed = 0;
        lists(&mut e.nodes, &mut |list| {
            if let Some(wait) = position(list, waits)
                && let Some(Hopper::Wait { stage, .. }) = hopper(&mut list[wait])
            {
                stage.index = pool.add(stage.index, two);
                changed += 1;
            }
        });
        assert_eq!(changed, 2, "two roles wait");
    };
    let (code, text) = with(OVERLAPPING, another).expect_err("refused");
    assert_eq!(code, "ring", "{text}");
    assert!(
        text.contains("a phase of the order barrier that is not its own"),
        "{text}"
    );
}
