//! Named barriers: barriers of a role's threads, and order barriers of a ping-pong schedule.

use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::pipeline::{OrderBarrier, Staged, Stages, WarpRole};
use tilewright::codegen::value::{F32, Predicate};
use tilewright::codegen::view::View;
use tilewright::host::{Arg, On, run};

use super::held::{are_scores, refused};
use super::hopper::{HOPPER, clean, mma, numbers, size};
use super::{Done, Result, layout, swizzled};

fn against(k: &mut Kernel, e: Expr, cmp: Cmp, number: i64) -> Predicate {
    let number = k.constant(number);
    Predicate::of(k, e, cmp, number)
}

/// What an author does with the barriers of two roles that turn rows around, each through shared memory of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Exchange {
    Right,
    NoBarrier,
    ForAWarp,
    OfTheOtherRole,
    SharedByRoles,
    WrittenBefore,
    WrittenAgain,
    OnlyOfTheWarp,
}

/// y ← x reversed in runs of 64, twice: two roles of 64 threads have a run each.
fn exchange(what: Exchange) -> Result<std::result::Result<Proven, String>> {
    let mut k = Kernel::new("exchange", 128);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::X, n, 128)?;
    let own =
        ["first_run", "second_run"].map(|name| k.shared(name, Element::F32, &swizzled("64:1")));
    let [first, second] = own;
    let own = [first?, second?];
    if what == Exchange::WrittenBefore {
        // By the other role's threads.
        let (thread, zero) = (k.thread(), F32::from(0.0));
        let other = against(&mut k, thread, Cmp::Ge, 64);
        k.when(other, |k| {
            let at = k.linear(&[(1, thread)], -64);
            own[0].store(k, &[at], zero)
        })?;
        k.warp_barrier();
    }
    for (role, name) in [(0, "first"), (1, "second")] {
        k.role(WarpRole::new(name, 2), |k, thread| {
            let which = if what == Exchange::SharedByRoles {
                0
            } else {
                role
            };
            let own: &View = &own[which];
            let run = k.linear(&[(2, block)], role as i64);
            let one = layout("(64,1):(1,0)");
            let from = x.tile(k, &[64], &[run])?.partition(k, &one, thread)?;
            let to = y.tile(k, &[64], &[run])?.partition(k, &one, thread)?;
            let put = own.partition(k, &one, thread)?;
            let back = layout("(64,1):(1,0)");
            let at = k.linear(&[(-1, thread)], 63);
            let at = k.bounded(at, 63);
            let values = k.load_fragment(&from)?;
            k.store_fragment(&put, &values)?;
            let meet = |k: &mut Kernel| -> Done {
                match what {
                    Exchange::NoBarrier => {}
                    Exchange::OnlyOfTheWarp => k.warp_barrier(),
                    Exchange::OfTheOtherRole if role == 1 => {}
                    Exchange::ForAWarp => {
                        let some = against(k, thread, Cmp::Lt, 32);
                        k.when(some, |k| {
                            k.barrier();
                            Done::Ok(())
                        })?;
                    }
                    _ => k.barrier(),
                }
                Ok(())
            };
            meet(k)?;
            if what == Exchange::WrittenBefore && role == 1 {
                let from = own.partition(k, &back, thread)?;
                return k.copy(&from, &to);
            }
            let turned = own.load::<f32>(k, &[at])?;
            if what != Exchange::WrittenAgain {
                meet(k)?;
            }
            own.store(k, &[thread], turned)?;
            meet(k)?;
            let from = own.partition(k, &back, thread)?;
            k.copy(&from, &to)
        })?;
    }
    Ok(k.build(HOPPER).map_err(|e| e.to_string()))
}

#[test]
fn a_role_exchanges_data_through_shared_memory() -> Result {
    let kernel = exchange(Exchange::Right)??;
    assert!(kernel.ptx.contains("bar.sync 1, 64;") && kernel.ptx.contains("bar.sync 2, 64;"));
    let n = 256;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let args = [
        ("n", size(n)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(n)),
    ];
    let outcome = run(&kernel, On::Emulator, args)?;
    clean(&outcome);
    let y: Vec<f32> = outcome.get("y")?;
    for (i, y) in y.iter().enumerate() {
        let x = x[i / 64 * 64 + 63 - i % 64];
        assert_eq!(y.to_bits(), x.to_bits(), "element {i}");
    }
    for (what, said) in [
        (Exchange::NoBarrier, "no barrier orders them"),
        (Exchange::ForAWarp, "a barrier of a role"),
        (Exchange::OfTheOtherRole, "no barrier orders them"),
        (Exchange::SharedByRoles, "roles are ordered by rings only"),
        (
            Exchange::WrittenBefore,
            "before roles part without a barrier of the block",
        ),
        (Exchange::WrittenAgain, "no barrier orders them"),
        (Exchange::OnlyOfTheWarp, "no barrier orders them"),
    ] {
        refused(what, exchange(what)?, said);
    }
    Ok(())
}

/// What an author does with the order barrier of consumer roles.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Order {
    Right,
    SameNumber,
    OneTakesNone,
    OnlyTheFirst,
    StageInSection,
    BeforeTheStage,
    OncePerTile,
    SectionInSection,
    Twice,
    AnotherSize,
    UnderACondition,
    OfMoreRoles,
    ProducerApart,
    BarrierInSection,
}

/// o ← Σ q·kᵀ over the tiles of 64 keys: each role has 64 queries, and they issue their MMAs one after the other.
fn ordered(what: Order, roles: u32) -> Result<std::result::Result<Proven, String>> {
    let warps = |role: u32| {
        if what == Order::AnotherSize && role == 1 {
            8
        } else {
            4
        }
    };
    let threads: u32 = (0..roles).map(|role| 32 * warps(role)).sum();
    let mut k = Kernel::new("ordered", threads + 128);
    let [m, n] = ["m", "n"].map(|name| k.size(name, 1 << 15));
    let (width, columns) = (k.constant(64), k.constant(64));
    let q = k.input("q", Element::F16, &[m, width]);
    let keys = k.input("keys", Element::F16, &[n, width]);
    let o = k.output("o", Element::F32, &[m, columns]);
    let rows: Vec<i64> = (0..roles).map(|role| i64::from(warps(role)) * 16).collect();
    let mut ring = |name: &str, rows, stages| {
        k.tma_ring(
            Stages::new(stages),
            [Staged::new(name, Element::F16, [rows, 64], &[])],
        )
    };
    let of_q: std::result::Result<Vec<_>, _> = (0..roles as usize)
        .map(|role| ring(["tile_q", "tile_q1", "tile_q2"][role], rows[role], 1))
        .collect();
    let of_q = of_q?;
    let of_k = ring("tile_k", 64, 2)?;
    let order = k.order_barrier(if what == Order::OfMoreRoles {
        roles + 1
    } else {
        roles
    })?;
    let (zero, steps) = (k.constant(0), k.tiles_in(n, 64)?);
    let block = k.tiles(Axis::X, m, 64 * i64::from(roles))?;
    for role in 0..roles {
        let name = ["first", "second", "third"][role as usize];
        k.role(WarpRole::new(name, warps(role)), |k, thread| {
            let groups = format!("({},1,1):(1,0,0)", warps(role) / 4);
            let mma = mma(64, &groups).expect("an atom");
            let rows = rows[role as usize];
            let number = if what == Order::SameNumber { 0 } else { role };
            let section = |k: &mut Kernel,
                           order: &OrderBarrier,
                           body: &mut dyn FnMut(&mut Kernel) -> Done| {
                let none = what == Order::OneTakesNone && role == 1;
                if none || what == Order::OnlyTheFirst && role > 0 {
                    return body(k);
                }
                k.in_order(order, number, |k| body(k))
            };
            let i = k.linear(&[(i64::from(roles), block)], i64::from(role));
            let sums = k.accumulators(&mma, [rows, 64], thread)?;
            let [q] = k.arrived(&of_q[role as usize], zero, i)?;
            if what == Order::OncePerTile && role == 1 {
                section(k, &order, &mut |_| Ok(()))?;
            }
            k.for_loop("keys", 0, 1, steps, |k, step| {
                let multiply = |k: &mut Kernel, tile: &View| k.gemm(&mma, &q, tile, &sums);
                match what {
                    Order::StageInSection => section(k, &order, &mut |k| {
                        let [tile] = k.arrived(&of_k, step, step)?;
                        multiply(k, &tile)
                    })?,
                    Order::BeforeTheStage if role == 1 => {
                        section(k, &order, &mut |_| Ok(()))?;
                        let [tile] = k.arrived(&of_k, step, step)?;
                        multiply(k, &tile)?;
                    }
                    Order::OncePerTile if role == 1 => {
                        let [tile] = k.arrived(&of_k, step, step)?;
                        multiply(k, &tile)?;
                    }
                    Order::UnderACondition => {
                        let [tile] = k.arrived(&of_k, step, step)?;
                        let some = against(k, step, Cmp::Lt, 3);
                        k.when(some, |k| section(k, &order, &mut |_| Ok(())))?;
                        multiply(k, &tile)?;
                    }
                    _ => {
                        let [tile] = k.arrived(&of_k, step, step)?;
                        section(k, &order, &mut |k| {
                            if what == Order::SectionInSection {
                                section(k, &order, &mut |_| Ok(()))?;
                            }
                            if what == Order::BarrierInSection {
                                k.barrier();
                            }
                            multiply(k, &tile)
                        })?;
                    }
                }
                if what == Order::Twice && role == 0 {
                    section(k, &order, &mut |_| Ok(()))?;
                }
                k.wait_wgmma(0);
                k.release(&of_k, step)
            })?;
            k.release(&of_q[role as usize], zero)?;
            let o = o
                .tile(k, &[rows, 64], &[i, zero])?
                .partition_c(k, &mma, thread)?;
            k.store_fragment(&o.vectors(k, 2)?, &sums)
        })?;
    }
    k.producer(WarpRole::new("producer", 4), |k| {
        let queries = |k: &mut Kernel, role: usize| {
            let i: Expr = k.linear(&[(i64::from(roles), block)], role as i64);
            k.fill_stage(&of_q[role], zero, i, |k, [to]| {
                let from = q.tile(k, &[rows[role], 64], &[i, zero])?;
                k.tma_load(&from, &to)
            })
        };
        let last = usize::from(what == Order::ProducerApart);
        for role in 0..roles as usize - last {
            queries(k, role)?;
        }
        k.produce(&of_k, zero, steps, |k, [to], step| {
            let from = keys.tile(k, &[64, 64], &[step, zero])?;
            k.tma_load(&from, &to)
        })?;
        for role in roles as usize - last..roles as usize {
            queries(k, role)?;
        }
        Done::Ok(())
    })?;
    Ok(k.build(HOPPER).map_err(|e| e.to_string()))
}

#[test]
fn roles_issue_mmas_in_order() -> Result {
    for (roles, what) in [
        (2, Order::Right),
        (3, Order::Right),
        (2, Order::BarrierInSection),
    ] {
        let kernel = ordered(what, roles)??;
        assert!(kernel.ptx.contains("bar.arrive 1, 256;"));
        for (m, n) in [(64, 64), (200, 500), (1, 1), (130, 0)] {
            let (q, keys) = (numbers(m * 64, 1), numbers(n * 64, 2));
            let args = [
                ("m", size(m)),
                ("n", size(n)),
                ("q", Arg::input(&q)),
                ("keys", Arg::input(&keys)),
                ("o", Arg::output::<f32>(m * 64)),
            ];
            let outcome = run(&kernel, On::Emulator, args)?;
            clean(&outcome);
            are_scores(&outcome.get::<f32>("o")?, (&q, &keys), 64);
        }
    }
    Ok(())
}

#[test]
fn misuse_of_order_barriers_is_refused() -> Result {
    for (what, said) in [
        (Order::SameNumber, "named barriers"),
        (Order::OneTakesNone, "named barriers"),
        (Order::OnlyTheFirst, "named barriers"),
        (
            Order::StageInSection,
            "within its section a role waits for a stage",
        ),
        (Order::BeforeTheStage, "in different orders or loops"),
        (Order::OncePerTile, "in different orders or loops"),
        (Order::SectionInSection, "does not arrive at the next one"),
        (Order::Twice, "in different orders or loops"),
        (Order::AnotherSize, "named barriers"),
        (Order::UnderACondition, "under a condition"),
        (Order::OfMoreRoles, "named barriers"),
        (Order::ProducerApart, "wait for each other forever"),
    ] {
        refused(what, ordered(what, 2)?, said);
    }
    let mut k = Kernel::new("k", 128);
    assert!(k.order_barrier(1).is_err());
    let order = k.order_barrier(2)?;
    assert!(
        k.in_order(&order, 0, |_| Done::Ok(())).is_err(),
        "outside of roles"
    );
    let many = k.order_barrier(14)?;
    k.role(WarpRole::new("all", 4), |k, _| {
        assert!(k.in_order(&order, 2, |_| Done::Ok(())).is_err());
        k.in_order(&many, 0, |_| Done::Ok(()))
    })?;
    let error = k.build(HOPPER).expect_err("16 barriers").to_string();
    assert!(error.contains("more than 15 named barriers"), "{error}");
    Ok(())
}
