//! Random distributions, and what they say element by element.

use layout_core::CoordLayout;
use layout_core::devices::Distribution;
use std::collections::BTreeSet;

/// Bytes that decide, one after the other; 0 when they are used up, so that shorter inputs are simpler.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first as usize % bound
    }
}

/// A leaf of one mode.
#[derive(Clone, Copy)]
struct Leaf {
    extent: u64,
    /// Axis and stride; `None` for stride 0.
    stride: Option<(usize, u64)>,
}

/// The mode of `leaves`, in parentheses, after rotating them.
fn mode(leaves: &[Leaf], turn: usize) -> (String, String) {
    let mut leaves = leaves.to_vec();
    if leaves.is_empty() {
        return ("1".to_owned(), "0".to_owned());
    }
    let turn = turn % leaves.len();
    leaves.rotate_left(turn);
    let shape: Vec<_> = leaves.iter().map(|l| l.extent.to_string()).collect();
    let stride: Vec<_> = leaves
        .iter()
        .map(|l| match l.stride {
            Some((axis, stride)) => format!("{stride}@{axis}"),
            None => "0".to_owned(),
        })
        .collect();
    // Now and then with parentheses inside.
    let write = |all: &[String]| match all {
        [one] => one.clone(),
        [first, rest @ ..] if turn == 1 => format!("({first},({}))", rest.join(",")),
        _ => format!("({})", all.join(",")),
    };
    (write(&shape), write(&stride))
}

/// A distribution of a matrix of `extents` over `devices` devices: factors of the number of devices along rows, columns or none, local leaves
/// below, between and above them, so that blocks, cyclic and block-cyclic forms, grids and replicas come up.
pub(crate) fn distribution(extents: [u64; 2], devices: u64, choices: &mut Choices) -> Distribution {
    let mut rest = devices;
    let mut factors = Vec::new();
    while rest > 1 {
        let divisors: Vec<u64> = (2..=rest).filter(|d| rest.is_multiple_of(*d)).collect();
        let factor = divisors[choices.below(divisors.len())];
        factors.push((factor, choices.below(3)));
        rest /= factor;
    }
    let mut device = Vec::new();
    let mut local = Vec::new();
    for (axis, &extent) in extents.iter().enumerate() {
        let along = factors.iter().filter(|(_, a)| *a == axis);
        let mut chain: Vec<(u64, bool)> = along.map(|&(f, _)| (f, true)).collect();
        for _ in 0..choices.below(3) {
            let at = choices.below(chain.len() + 1);
            chain.insert(at, (1 + choices.below(3) as u64, false));
        }
        let product: u64 = chain.iter().map(|(f, _)| f).product();
        let at = choices.below(chain.len() + 1);
        chain.insert(at, (extent.div_ceil(product), false));
        let mut running = 1;
        for (extent, of_device) in chain {
            let leaf = Leaf {
                extent,
                stride: Some((axis, running)),
            };
            running *= extent;
            if of_device {
                device.push(leaf);
            } else {
                local.push(leaf);
            }
        }
    }
    for &(extent, _) in factors.iter().filter(|(_, a)| *a == 2) {
        let leaf = Leaf {
            extent,
            stride: None,
        };
        device.insert(choices.below(device.len() + 1), leaf);
    }
    let (device_shape, device_stride) = mode(&device, choices.below(3));
    let (local_shape, local_stride) = mode(&local, choices.below(3));
    let text = format!("({device_shape},{local_shape}):({device_stride},{local_stride})");
    let layout = CoordLayout::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    Distribution::new(extents, layout).unwrap_or_else(|e| panic!("{extents:?} {text}: {e}"))
}

/// Every place inside the matrix: (device, row, column), by evaluating the layout at every coordinate.
pub(crate) fn places(extents: [u64; 2], layout: &CoordLayout) -> Vec<(usize, u64, u64)> {
    let devices = layout.get(0).expect("a device mode").size();
    let mut all = Vec::new();
    for i in 0..layout.size() {
        let at = layout.checked_index(i).expect("in the domain");
        let part = |axis: usize| -> i64 {
            if at.leaves() == 1 {
                // `4:1@0` alone leads to integers.
                if axis == 0 { at.size().unwrap_or(0) } else { 0 }
            } else {
                at.get(axis).expect("two axes").size().expect("an integer")
            }
        };
        let (row, column) = (part(0), part(1));
        if (0..extents[0] as i64).contains(&row) && (0..extents[1] as i64).contains(&column) {
            all.push(((i % devices) as usize, row as u64, column as u64));
        }
    }
    all
}

/// The elements of each device.
pub(crate) fn held(of: &Distribution) -> Vec<BTreeSet<(u64, u64)>> {
    let mut held = vec![BTreeSet::new(); of.devices()];
    for (device, row, column) in places(of.extents(), of.layout()) {
        assert!(
            held[device].insert((row, column)),
            "{of}: twice on {device}"
        );
    }
    held
}
