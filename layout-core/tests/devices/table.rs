//! The textbook cases: the placements of distributed tensors, and what moves between each two.

use layout_core::CoordLayout;
use layout_core::devices::{Distribution, DistributionError, Movement, Redistribution};

type Made = Result<Distribution, DistributionError>;

fn kind(from: &Made, to: &Made) -> Movement {
    let (from, to) = (from.as_ref().expect("from"), to.as_ref().expect("to"));
    let moved = Redistribution::derive(from, to).expect("comparable");
    moved.movement()
}

fn of(extents: [u64; 2], text: &str) -> Made {
    Distribution::new(extents, CoordLayout::parse(text).expect(text))
}

#[test]
fn shard_replicate_and_partial_on_one_axis_of_devices() {
    use Movement::{AllGather, AllReduce, AllToAll, Nothing, ReduceScatter};
    for p in 2..=8 {
        // The second and third are not divided by the devices, and leave some without elements.
        for extents in [[16 * p as u64, 8 * p as u64], [37, 29], [9, 11]] {
            let rows = Distribution::rows(extents, p);
            let columns = Distribution::columns(extents, p);
            let all = Distribution::replicas(extents, p);
            let terms = Distribution::terms(extents, p);
            let table = [
                (&rows, [Nothing, AllToAll, AllGather]),
                (&columns, [AllToAll, Nothing, AllGather]),
                (&all, [Nothing, Nothing, Nothing]),
                (&terms, [ReduceScatter, ReduceScatter, AllReduce]),
            ];
            for (from, expected) in table {
                let found = [&rows, &columns, &all].map(|to| kind(from, to));
                assert_eq!(found, expected, "{from:?} of {extents:?} on {p}");
            }
            assert_eq!(kind(&terms, &terms), Nothing);
        }
    }
}

#[test]
fn a_grid_moves_within_its_rows_and_columns() {
    let extents = [12, 12];
    let grid = Distribution::grid(extents, [2, 3]);
    // Device r + 2·c: rows over the 2, copies or terms over the 3.
    let rows = of(extents, "((2,3),(6,12)):((6@0,0),(1@0,1@1))");
    let columns = of(extents, "((2,3),(12,4)):((0,4@1),(1@0,1@1))");
    assert_eq!(kind(&grid, &rows), Movement::AllGather);
    assert_eq!(kind(&grid, &columns), Movement::AllGather);
    assert_eq!(kind(&rows, &grid), Movement::Nothing);
    let terms = rows.map(Distribution::summed);
    assert_eq!(kind(&terms, &grid), Movement::ReduceScatter);
    assert_eq!(kind(&terms, &rows), Movement::AllReduce);
    // Within a group of 3 with the same rows, and to nobody else.
    let moved = Redistribution::derive(&grid.unwrap(), &rows.unwrap()).unwrap();
    assert!(moved.pieces().iter().all(|p| p.from % 2 == p.to % 2));
    assert_eq!(moved.pieces().len(), 6 * 2);
    // Rows of 2 blocks of 6, each of which is then cut into 3: an exchange in each of the two groups.
    let finer = of(extents, "((2,3),(2,12)):((6@0,2@0),(1@0,1@1))");
    let narrow = of(extents, "((2,3),(6,4)):((6@0,4@1),(1@0,1@1))");
    assert_eq!(kind(&finer, &narrow), Movement::AllToAll);
}

#[test]
fn what_the_table_of_placements_does_not_have() {
    let extents = [16, 8];
    let blocks = Distribution::rows(extents, 4);
    let cyclic = of(extents, "(4,(4,8)):(1@0,(4@0,1@1))");
    // Each block of 4 rows has one row of each device.
    assert_eq!(kind(&blocks, &cyclic), Movement::AllToAll);
    assert_eq!(kind(&cyclic, &blocks), Movement::AllToAll);
    // Blocks dealt out in twos: device 0 has rows 0, 1, 8, 9, of blocks 0 and 2.
    let dealt = of(extents, "(4,(2,2,8)):(2@0,(1@0,8@0,1@1))");
    assert_eq!(kind(&blocks, &dealt), Movement::PointToPoint);
    // The devices in another order: a permutation.
    let reversed = of(extents, "((2,2),(4,8)):((8@0,4@0),(1@0,1@1))");
    assert_eq!(kind(&blocks, &reversed), Movement::PointToPoint);
    // Everything on device 0, whose copies then go to all: a broadcast is an all-gather in which one device has all.
    let one = of(extents, "(4,(16,8)):(16@0,(1@0,1@1))");
    assert_eq!(
        kind(&one, &Distribution::replicas(extents, 4)),
        Movement::AllGather
    );
    assert_eq!(kind(&one, &blocks), Movement::AllToAll);
    let terms = Distribution::terms(extents, 4);
    assert_eq!(kind(&terms, &one), Movement::ReduceScatter);
    // Terms of 4 devices, added up on pairs.
    let pairs = of(extents, "((2,2),(8,8)):((8@0,0),(1@0,1@1))");
    assert_eq!(kind(&terms, &pairs), Movement::PointToPoint);
}

#[test]
fn the_links_of_two_devices() {
    // The products that are measured: A of 8192×4096 by rows, to everybody.
    let rows = Distribution::rows([8192, 4096], 2).unwrap();
    let all = Distribution::replicas([8192, 4096], 2).unwrap();
    let gather = Redistribution::derive(&rows, &all).unwrap();
    assert_eq!(gather.link_elements(0, 1), 4096 * 4096);
    assert_eq!(gather.link_elements(1, 0), 4096 * 4096);
    assert_eq!(gather.link_elements(0, 0), 0);
    assert_eq!(gather.link_elements(2, 0), 0);
    let scatter = Redistribution::derive(&all.summed(), &rows).unwrap();
    assert_eq!(scatter.busiest_link(), 4096 * 4096);
    let reduce = Redistribution::derive(&all.summed(), &all).unwrap();
    assert_eq!(reduce.busiest_link(), 8192 * 4096);
    // In two steps, each link carries a p-th twice.
    assert_eq!(scatter.busiest_link() + gather.busiest_link(), 8192 * 4096);
}
