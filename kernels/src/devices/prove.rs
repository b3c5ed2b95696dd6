//! The proof of a program, from its operations alone.
//!
//! Four steps. The operations are ordered by streams and flags ([`order`](super::order)); who waits in vain is a deadlock. None is submitted before one that it
//! waits for ([`submission`](super::submission)): whatever queues a driver has, none is stuck. Then every two operations
//! that touch the same elements, one of them writing, must be ordered: so all schedules compute the same. Then one schedule is followed,
//! rectangle by rectangle: what an element of a factor is (itself, or nothing), and what an element of C or of a partial sum is made of.

mod collective;
use std::collections::BTreeMap;
use std::ops::Range;

use layout_core::devices::Block;

use super::block::{contains, intersection, is_empty, length, overlap, without};
use super::error::{DevicesError, Fault};
use super::order::Order;
use super::program::{Action, Addend, Content, Op, Operand, Product, Program, Region};
use super::submission;

/// What was proven of a program.
///
/// ```
/// use tilewright_kernels::devices::{Placement, Program};
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
/// let program = Program::derive(&problem, &Placement::parse("columns,rows,rows", &problem, 2)?)?;
/// let proof = program.prove()?;
/// // Half of C, as terms, goes each way.
/// assert_eq!(proof.links[&(0, 1)], 32 * 48);
/// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramProof {
    /// Products.
    pub products: usize,
    /// Copies, those within a device among them.
    pub copies: usize,
    /// Collective operations.
    pub collectives: usize,
    /// Flags.
    pub flags: usize,
    /// Elements that each link carries, by (from, to); only links between different devices that carry any.
    pub links: BTreeMap<(usize, usize), u64>,
    /// Pairs of operations that touch the same elements, all of them ordered.
    pub ordered_pairs: usize,
}

/// What an element holds.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    /// The element of A, B or the old C itself.
    Given,
    /// A part of the sum.
    Sum {
        /// The indices of the sum that are in it, sorted and disjoint.
        depth: Vec<Range<u64>>,
        /// β times the old C is in it.
        old: bool,
        /// Bias and activation were applied.
        finished: bool,
    },
}

/// The rectangles of a buffer whose content is known.
#[derive(Clone, Default)]
struct Held(Vec<(Block, Value)>);

impl Held {
    fn write(&mut self, block: &Block, value: Value) {
        let mut kept: Vec<_> = self
            .0
            .drain(..)
            .flat_map(|(known, value)| {
                let rest = without(&known, block);
                rest.into_iter().map(move |part| (part, value.clone()))
            })
            .collect();
        if !is_empty(block) {
            kept.push((block.clone(), value));
        }
        self.0 = kept;
    }

    /// The content of a block in rectangles, or the first element that holds nothing.
    fn read(&self, block: &Block) -> Result<Vec<(Block, Value)>, (u64, u64)> {
        let mut left = if is_empty(block) {
            Vec::new()
        } else {
            vec![block.clone()]
        };
        let mut found = Vec::new();
        for (known, value) in &self.0 {
            let common = intersection(known, block);
            if is_empty(&common) {
                continue;
            }
            left = left
                .iter()
                .flat_map(|part| without(part, &common))
                .collect();
            found.push((common, value.clone()));
        }
        match left.first() {
            Some(part) => Err((part.rows.start, part.columns.start)),
            None => Ok(found),
        }
    }
}

impl Program {
    /// Proves that every schedule which streams and flags allow gives each device its part of C, each element of it the whole sum.
    ///
    /// # Errors
    ///
    /// [`DevicesError::Fault`] with the first fault.
    pub fn prove(&self) -> Result<ProgramProof, DevicesError> {
        self.well_formed()?;
        let order = Order::of(self)?;
        submission::in_order(self)?;
        let ordered_pairs = self.races(&order)?;
        self.values(&order)?;
        let mut links = BTreeMap::new();
        let (mut products, mut copies) = (0, 0);
        for op in &self.ops {
            products += usize::from(matches!(op.action, Action::Product(_)));
            copies += usize::from(matches!(op.action, Action::Copy { .. }));
            for (from, buffer, elements) in self.carried(op) {
                let link = (from, self.buffers[buffer].device);
                *links.entry(link).or_insert(0) += elements;
            }
        }
        Ok(ProgramProof {
            products,
            copies,
            collectives: self.parts().len(),
            flags: self.flags,
            links,
            ordered_pairs,
        })
    }

    /// `device 0's A`.
    pub(super) fn named(&self, buffer: usize) -> String {
        let buffer = &self.buffers[buffer];
        format!("device {}'s {}", buffer.device, buffer.name)
    }

    /// Checks that operations name devices, streams, flags, buffers and blocks that exist, and that blocks fit together: the first part of
    /// [`Program::prove`].
    ///
    /// # Errors
    ///
    /// [`DevicesError::Fault`] with the first fault.
    pub fn well_formed(&self) -> Result<(), DevicesError> {
        Ok(self.named_things_exist()?)
    }

    fn named_things_exist(&self) -> Result<(), Fault> {
        let malformed = |op: &Op, reason: String| Fault::Malformed {
            op: op.to_string(),
            reason,
        };
        for op in &self.ops {
            if op.device >= self.devices || op.stream >= self.streams {
                let reason = format!(
                    "there are {} devices with {} streams each",
                    self.devices, self.streams
                );
                return Err(malformed(op, reason));
            }
            if let Action::Set(flag) | Action::Wait(flag) = op.action
                && flag >= self.flags
            {
                return Err(malformed(op, format!("there are {} flags", self.flags)));
            }
            for (region, _) in regions(op) {
                let Some(buffer) = self.buffers.get(region.buffer) else {
                    return Err(malformed(
                        op,
                        format!("there is no buffer {}", region.buffer),
                    ));
                };
                if !contains(&buffer.block, &region.block) {
                    let reason = format!("its block reaches beyond {}", self.named(region.buffer));
                    return Err(malformed(op, reason));
                }
                let here = buffer.device == op.device;
                let reaches = match &op.action {
                    Action::Product(product) => {
                        product.addend == Addend::Nothing && *region == product.c
                    }
                    Action::Collective(_) => false,
                    _ => true,
                };
                if !here && !reaches {
                    let reason = format!(
                        "{} is on another device, where a product may only overwrite; copy it first",
                        self.named(region.buffer)
                    );
                    return Err(malformed(op, reason));
                }
            }
            match &op.action {
                Action::Copy { from, to } => {
                    let same = self.buffers[from.buffer].operand == self.buffers[to.buffer].operand;
                    if !same || from.block != to.block {
                        let reason = "it puts elements where others belong".to_owned();
                        return Err(malformed(op, reason));
                    }
                }
                Action::Product(product) => self.fits(op, product)?,
                Action::Collective(_) | Action::Set(_) | Action::Wait(_) => {}
            }
        }
        self.collectives_fit()?;
        for (device, result) in self.results.iter().enumerate() {
            let fits = self.buffers.get(result.buffer).is_some_and(|buffer| {
                buffer.device == device && contains(&buffer.block, &result.block)
            });
            if !fits {
                return Err(Fault::Incomplete {
                    device,
                    element: (result.block.rows.start, result.block.columns.start),
                    reason: "its buffer is not on this device or too small".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The blocks of a product are those of one product.
    fn fits(&self, op: &Op, product: &Product) -> Result<(), Fault> {
        let Product { a, b, c, .. } = product;
        let operand = |region: &Region| self.buffers[region.buffer].operand;
        let reason = if [operand(a), operand(b), operand(c)] != [Operand::A, Operand::B, Operand::C]
        {
            "its buffers are not those of A, B and C".to_owned()
        } else if a.block.rows != c.block.rows || b.block.columns != c.block.columns {
            "its rows are not those of A, or its columns not those of B".to_owned()
        } else if a.block.columns != b.block.rows {
            format!(
                "it takes indices {:?} of the sums from A and {:?} from B",
                a.block.columns, b.block.rows
            )
        } else {
            return Ok(());
        };
        Err(Fault::Wrong {
            op: op.to_string(),
            reason,
        })
    }

    /// Every two operations that touch the same elements, one of them writing, are ordered; says how many there are.
    fn races(&self, order: &Order) -> Result<usize, Fault> {
        let mut users: Vec<Vec<(usize, &Block, bool)>> = vec![Vec::new(); self.buffers.len()];
        for (index, op) in self.ops.iter().enumerate() {
            for (region, writes) in regions(op) {
                users[region.buffer].push((index, &region.block, writes));
            }
        }
        let mut pairs = 0;
        for (buffer, users) in users.iter().enumerate() {
            for (at, &(first, block, writes)) in users.iter().enumerate() {
                for &(second, other, also) in &users[at + 1..] {
                    if first == second || !(writes || also) || !overlap(block, other) {
                        continue;
                    }
                    if !order.before(first, second) && !order.before(second, first) {
                        return Err(Fault::Race {
                            first: self.ops[first].to_string(),
                            second: self.ops[second].to_string(),
                            buffer: self.named(buffer),
                        });
                    }
                    pairs += 1;
                }
            }
        }
        Ok(pairs)
    }

    /// Follows what every buffer holds.
    fn values(&self, order: &Order) -> Result<(), Fault> {
        let mut held: Vec<Held> = self
            .buffers
            .iter()
            .map(|buffer| {
                let mut held = Held::default();
                match &buffer.content {
                    Content::Nothing => {}
                    Content::Given(block) => {
                        held.write(&intersection(&buffer.block, block), Value::Given);
                    }
                    Content::Everything => held.write(&buffer.block, Value::Given),
                }
                held
            })
            .collect();
        let parts = self.parts();
        for &index in &order.sequence {
            let op = &self.ops[index];
            let read = |held: &[Held], region: &Region| {
                held[region.buffer]
                    .read(&region.block)
                    .map_err(|element| Fault::Unwritten {
                        op: op.to_string(),
                        buffer: self.named(region.buffer),
                        element,
                    })
            };
            match &op.action {
                Action::Copy { from, to } => {
                    for (block, value) in read(&held, from)? {
                        held[to.buffer].write(&block, value);
                    }
                }
                Action::Product(product) => {
                    read(&held, &product.a)?;
                    read(&held, &product.b)?;
                    let found = if product.addend == Addend::Nothing {
                        vec![(product.c.block.clone(), None)]
                    } else {
                        let found = read(&held, &product.c)?.into_iter();
                        found.map(|(block, value)| (block, Some(value))).collect()
                    };
                    for (block, value) in found {
                        let sum = added(product, value).map_err(|reason| Fault::Wrong {
                            op: op.to_string(),
                            reason,
                        })?;
                        held[product.c.buffer].write(&block, sum);
                    }
                }
                // Its parts follow each other, and nothing that they use changes in between: the first stands for all.
                Action::Collective(part) if parts[&part.number][0] == index => {
                    self.collect(&mut held, &parts[&part.number])?;
                }
                Action::Collective(_) | Action::Set(_) | Action::Wait(_) => {}
            }
        }
        self.results
            .iter()
            .enumerate()
            .try_for_each(|(device, result)| {
                let incomplete = |element, reason: String| Fault::Incomplete {
                    device,
                    element,
                    reason,
                };
                let found = held[result.buffer]
                    .read(&result.block)
                    .map_err(|element| incomplete(element, "nobody computes it".to_owned()))?;
                found.into_iter().try_for_each(|(block, value)| {
                    self.complete(&value).map_err(|reason| {
                        incomplete((block.rows.start, block.columns.start), reason)
                    })
                })
            })
    }

    /// A result has every index of the sums, the old C if β is not 0, and the epilogue.
    fn complete(&self, value: &Value) -> Result<(), String> {
        let Value::Sum {
            depth,
            old,
            finished,
        } = value
        else {
            return Err("it is still the old C".to_owned());
        };
        let covered: u64 = depth.iter().map(length).sum();
        if covered != self.problem.k {
            return Err(format!(
                "its sum has {covered} of {} indices",
                self.problem.k
            ));
        }
        if *old != (self.problem.beta != 0.0) {
            return Err(if *old {
                "the old C is added, and β is 0".to_owned()
            } else {
                "the old C is not added".to_owned()
            });
        }
        if *finished {
            Ok(())
        } else {
            Err("bias and activation are missing".to_owned())
        }
    }
}

/// What an operation touches, and whether it writes there.
fn regions(op: &Op) -> Vec<(&Region, bool)> {
    match &op.action {
        Action::Copy { from, to } => vec![(from, false), (to, true)],
        Action::Product(product) => {
            vec![(&product.a, false), (&product.b, false), (&product.c, true)]
        }
        // What other devices give is ordered by their own parts.
        Action::Collective(part) => vec![(&part.from, false), (&part.to, true)],
        Action::Set(_) | Action::Wait(_) => Vec::new(),
    }
}

/// What a product leaves where `value` was.
fn added(product: &Product, value: Option<Value>) -> Result<Value, String> {
    let (mut depth, old) = match (product.addend, value) {
        (Addend::Nothing, _) | (_, None) => (Vec::new(), false),
        (Addend::Old, Some(Value::Given)) => (Vec::new(), true),
        (Addend::Old, Some(Value::Sum { .. })) => {
            return Err("β would scale a partial sum, not the old C".to_owned());
        }
        (Addend::Partial, Some(Value::Given)) => {
            return Err("it adds the old C without β".to_owned());
        }
        (Addend::Partial, Some(Value::Sum { finished: true, .. })) => {
            return Err("bias and activation are applied already".to_owned());
        }
        (Addend::Partial, Some(Value::Sum { depth, old, .. })) => (depth, old),
    };
    let more = product.depth();
    if let Some(twice) = depth
        .iter()
        .find(|known| known.start.max(more.start) < known.end.min(more.end))
    {
        return Err(format!(
            "indices {}..{} of the sums are added twice",
            twice.start.max(more.start),
            twice.end.min(more.end)
        ));
    }
    if length(more) > 0 {
        depth.push(more.clone());
        depth.sort_by_key(|range| range.start);
    }
    Ok(Value::Sum {
        depth,
        old,
        finished: product.finishes,
    })
}
