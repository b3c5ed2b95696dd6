//! The exhaustive search over F2: every address bit gets its image in the space of banks, one bit at a time.
//!
//! Words of 4 bytes and 32 banks make the bank space F2^5. Bits inside the widest access keep their place; each bit above gets an
//! image in the remaining dimensions. A change of basis of those dimensions only renames banks, so the next image is either in the span
//! of the ones used so far, or *one* fresh unit vector: this breaks the symmetry without losing any layout.
//!
//! The points of a phase that form an affine subspace `p + A` cost `2^(dim A - rank K A)`. Put each subspace's basis in echelon form
//! in the order in which bits are assigned: every basis vector is decided at the bit that leads it, and lies in the span of the earlier
//! ones (a rank lost, the cost doubled) or not. Sets of images are masks of 32 bits, so a step is a few words of arithmetic.
//! Points that form no subspace are counted: those that agree on all unassigned bits already differ by a known amount.
//!
//! A few hundred random greedy descents come first, since a good bound is worth more than a clever order. Costs only grow along
//! a branch, so that a branch is cut when it reaches the best cost known. When the search finishes, the best cost is the
//! optimum over every xor-linear layout (that keeps words whole): this is the certificate.
//!
//! Example: rows of 128 bytes read by `ldmatrix`: three row bits with A = their span, three dimensions (16-byte groups). The
//! images fresh, fresh, fresh cost 1.

use super::problem::{MAX_ALL_PHASES, PhasePoints, Problem};

/// Word bits of the largest tile: 4096 x 4096 elements of 16 bytes.
pub(super) const MAX_WORD_BITS: usize = 27;

/// Which images are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Images {
    /// Unit vectors, each for at most two bits, or 0: bit-permuted strides and a swizzle.
    Units,
    /// Anything.
    All,
}

/// What a search found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The least cost below the bound, with the image of each word bit of the block (units of words, 0..32).
    pub(super) best: Option<(u32, [u8; MAX_WORD_BITS])>,
    /// Whether the whole space was seen (or the target reached).
    pub(super) finished: bool,
    /// Nodes visited.
    pub(super) nodes: u64,
}

/// One phase as the search sees it.
#[derive(Clone, Copy)]
struct Item {
    weight: u32,
    affine: bool,
    /// Affine: `basis[i]` leads with key bit `i`, or is 0.
    basis: [u32; MAX_WORD_BITS],
    /// Otherwise: the points' keys, ascending, and their images so far.
    len: usize,
    keys: [u32; 32],
}

/// What changes along a branch.
#[derive(Clone, Copy)]
struct State {
    /// Affine items: the images spanned so far, as a mask of the 32 vectors, and the item's wavefronts.
    spans: [u32; MAX_ALL_PHASES],
    costs: [u32; MAX_ALL_PHASES],
}

/// Random greedy descents before the exhaustive pass: a good bound early cuts most of the tree.
const ATTEMPTS: u32 = 200;

struct Search<'a> {
    items: &'a [Item],
    images: Images,
    granule: usize,
    /// Key bits, granule included.
    bits: usize,
    image: [u8; MAX_WORD_BITS],
    best: Option<[u8; MAX_WORD_BITS]>,
    bound: u32,
    target: u32,
    nodes: u64,
    /// Work done and allowed: one unit is one item looked at for one candidate image, a point of an item that is counted being one too.
    work: u64,
    limit: u64,
    /// In a greedy descent the state of the generator that breaks ties (0: the first wins); nothing in the exhaustive pass.
    greedy: Option<u32>,
}

/// `{ v ^ by : v in mask }`.
const fn translate(mask: u32, by: u32) -> u32 {
    let mut m = mask;
    if by & 1 != 0 {
        m = (m & 0x5555_5555) << 1 | (m >> 1) & 0x5555_5555;
    }
    if by & 2 != 0 {
        m = (m & 0x3333_3333) << 2 | (m >> 2) & 0x3333_3333;
    }
    if by & 4 != 0 {
        m = (m & 0x0f0f_0f0f) << 4 | (m >> 4) & 0x0f0f_0f0f;
    }
    if by & 8 != 0 {
        m = (m & 0x00ff_00ff) << 8 | (m >> 8) & 0x00ff_00ff;
    }
    if by & 16 != 0 {
        m = m.rotate_left(16);
    }
    m
}

/// Marsaglia's generator; 0 stays 0.
const fn xorshift(seed: u32) -> u32 {
    let x = seed ^ seed << 13;
    let x = x ^ x >> 17;
    x ^ x << 5
}

/// log2 of the words that stay together.
pub(super) fn granule_word_bits(problem: &Problem) -> u32 {
    (problem.log_granule + problem.log_elem).saturating_sub(2)
}

/// The word of the block that holds this element.
pub(super) fn word_of(problem: &Problem, point: (u32, u32)) -> u32 {
    let x = problem.block_index(point);
    if problem.log_elem < 2 {
        x >> (2 - problem.log_elem)
    } else {
        x << (problem.log_elem - 2)
    }
}

fn points_of(problem: &Problem, phase: &PhasePoints) -> ([(u32, u32); 32], usize) {
    // (word, which block): elements that share a word are one point.
    let blocks = problem.cols >> problem.col_bits;
    let mut points = [(0, 0); 32];
    let mut len = 0;
    for (row, col) in phase.points() {
        let point = (
            word_of(problem, (row, col)),
            (row >> problem.row_bits) * blocks + (col >> problem.col_bits),
        );
        if !points[..len].contains(&point) {
            points[len] = point;
            len += 1;
        }
    }
    (points, len)
}

/// Searches for a map that costs less than `bound`, and stops at `target`.
pub(super) fn search(
    problem: &Problem,
    images: Images,
    bound: u32,
    target: u32,
    limit: u64,
) -> Found {
    let granule = granule_word_bits(problem) as usize;
    let mut involved = 0_u32;
    for phase in problem.phases() {
        let (points, len) = points_of(problem, phase);
        for p in &points[..len] {
            involved |= p.0 ^ points[0].0;
        }
    }
    // Key order: granule bits in place, then the involved bits; bits of the same phases next to each other.
    let mut order = [0_u8; MAX_WORD_BITS];
    let mut bits = 0;
    for bit in 0..granule {
        order[bits] = bit as u8;
        bits += 1;
    }
    let mut placed = (1_u32 << granule) - 1;
    for phase in problem.phases() {
        let (points, len) = points_of(problem, phase);
        let support = points[..len].iter().fold(0, |s, p| s | (p.0 ^ points[0].0));
        for bit in granule..MAX_WORD_BITS {
            if support & involved & !placed & 1 << bit != 0 {
                order[bits] = bit as u8;
                bits += 1;
                placed |= 1 << bit;
            }
        }
    }
    let key_of = |word: u32| (0..bits).fold(0_u32, |key, i| key | (word >> order[i] & 1) << i);

    let blank = Item {
        weight: 0,
        affine: true,
        basis: [0; MAX_WORD_BITS],
        len: 0,
        keys: [0; 32],
    };
    let mut items = [blank; MAX_ALL_PHASES];
    let mut count = 0;
    for phase in problem.phases() {
        let (points, len) = points_of(problem, phase);
        let mut item = Item {
            weight: phase.weight,
            len,
            ..blank
        };
        let mut dimension = 0;
        let one_block = points[..len].iter().all(|p| p.1 == points[0].1);
        for (i, p) in points[..len].iter().enumerate() {
            item.keys[i] = key_of(p.0 ^ points[0].0);
            let mut rest = item.keys[i];
            for lead in (0..bits).rev() {
                if rest >> lead & 1 == 1 && item.basis[lead] != 0 {
                    rest ^= item.basis[lead];
                }
            }
            if rest != 0 {
                item.basis[31 - rest.leading_zeros() as usize] = rest;
                dimension += 1;
            }
        }
        item.affine = one_block && len == 1 << dimension;
        if item.affine {
            reduce(&mut item.basis);
            item.keys = [0; 32];
        } else {
            item.basis = [0; MAX_WORD_BITS];
            item.keys[..len].sort_unstable();
        }
        let same = items[..count].iter_mut().find(|other| {
            other.affine == item.affine
                && other.len == item.len
                && other.basis == item.basis
                && other.keys == item.keys
        });
        if let Some(same) = same {
            same.weight += item.weight;
        } else {
            items[count] = item;
            count += 1;
        }
    }

    let mut search = Search {
        items: &items[..count],
        images,
        granule,
        bits,
        image: [0; MAX_WORD_BITS],
        best: None,
        bound,
        target,
        nodes: 0,
        work: 0,
        limit,
        greedy: None,
    };
    let mut state = State {
        spans: [1; MAX_ALL_PHASES],
        costs: [1; MAX_ALL_PHASES],
    };
    for bit in 0..granule {
        search.image[bit] = 1 << bit;
        search.assign(&mut state, bit, 1 << bit);
    }
    for attempt in 0..=ATTEMPTS {
        if search.bound <= target || search.work > limit / 8 {
            break;
        }
        search.greedy = Some(attempt.wrapping_mul(0x9e37_79b9));
        search.extend(&state, granule, 0);
    }
    search.greedy = None;
    search.extend(&state, granule, 0);
    let best = search.best.map(|keys| {
        let mut image = [0_u8; MAX_WORD_BITS];
        for i in 0..bits {
            image[usize::from(order[i])] = keys[i];
        }
        (search.bound, image)
    });
    Found {
        best,
        finished: search.nodes < limit,
        nodes: search.nodes,
    }
}

/// Clears every lead from the other basis vectors, so that equal spaces have equal bases.
fn reduce(basis: &mut [u32; MAX_WORD_BITS]) {
    for lead in 0..MAX_WORD_BITS {
        if basis[lead] != 0 {
            for other in lead + 1..MAX_WORD_BITS {
                if basis[other] >> lead & 1 == 1 {
                    basis[other] ^= basis[lead];
                }
            }
        }
    }
}

impl Search<'_> {
    fn image_of(&self, key: u32) -> u32 {
        let mut rest = key;
        let mut image = 0;
        while rest != 0 {
            image ^= u32::from(self.image[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
        image
    }

    /// Wavefronts that the points already have for certain, once key bits `0..known` have images.
    fn points_cost(&self, item: &Item, known: usize) -> u32 {
        let mask = (1_u32 << known) - 1;
        let mut most = 1;
        let mut first = 0;
        while first < item.len {
            let class = item.keys[first] & !mask;
            let mut count = [0_u8; 32];
            let mut last = first;
            while last < item.len && item.keys[last] & !mask == class {
                let image = self.image_of(item.keys[last] & mask) as usize;
                count[image] += 1;
                most = most.max(count[image]);
                last += 1;
            }
            first = last;
        }
        u32::from(most)
    }

    /// Gives key bit `bit` the image `v` in `state` (`self.image[bit]` is already set).
    fn assign(&self, state: &mut State, bit: usize, v: u32) {
        for (i, item) in self.items.iter().enumerate() {
            if item.affine {
                let vector = item.basis[bit];
                if vector == 0 {
                    continue;
                }
                let image = v ^ self.image_of(vector & !(1 << bit));
                if state.spans[i] >> image & 1 == 1 {
                    state.costs[i] *= 2;
                } else {
                    state.spans[i] |= translate(state.spans[i], image);
                }
            } else if item.keys[..item.len].iter().any(|key| key >> bit & 1 == 1) {
                state.costs[i] = self.points_cost(item, bit + 1);
            }
        }
    }

    fn total(&self, state: &State) -> u32 {
        self.items
            .iter()
            .zip(&state.costs)
            .map(|(item, cost)| item.weight * cost)
            .sum()
    }

    /// Assigns key bits from `bit` on; images so far span the first `used` dimensions above the granule.
    fn extend(&mut self, state: &State, bit: usize, used: usize) {
        self.nodes += 1;
        self.work += 16;
        if bit == self.bits {
            let total = self.total(state);
            if total < self.bound {
                self.bound = total;
                self.best = Some(self.image);
            }
            return;
        }
        // Candidates with the cost they lead to, cheapest first; fresh directions before old ones.
        let mut candidates = [(0_u32, 0_u32); 33];
        let mut count = 0;
        let dimensions = 5 - self.granule;
        let (fresh, in_span) = (usize::from(used < dimensions), 1_u32 << used);
        for n in 0..fresh as u32 + in_span {
            let value = if n < fresh as u32 {
                in_span
            } else {
                n - fresh as u32
            };
            if self.images == Images::Units && n >= fresh as u32 && !self.unit_allowed(bit, value) {
                continue;
            }
            let v = value << self.granule;
            let cost = self.cost_with(state, bit, v);
            if cost < self.bound {
                candidates[count] = (cost, v);
                count += 1;
            }
        }
        // Insertion sort: stable, short.
        for i in 1..count {
            let mut j = i;
            while j > 0 && candidates[j - 1].0 > candidates[j].0 {
                candidates.swap(j - 1, j);
                j -= 1;
            }
        }
        if let Some(seed) = self.greedy {
            // One of the cheapest, and no way back.
            let tied = candidates[..count]
                .iter()
                .take_while(|c| c.0 == candidates[0].0)
                .count();
            if tied > 0 {
                let next = xorshift(seed);
                self.greedy = Some(next);
                candidates[0] = candidates[next as usize % tied];
                count = 1;
            }
        }
        for &(cost, v) in &candidates[..count] {
            if cost >= self.bound || self.bound <= self.target || self.work >= self.limit {
                return;
            }
            self.image[bit] = v as u8;
            let mut next = *state;
            self.assign(&mut next, bit, v);
            let is_fresh = v >> self.granule == in_span;
            self.extend(&next, bit + 1, used + usize::from(is_fresh));
            self.image[bit] = 0;
        }
    }

    /// The total once key bit `bit` has the image `v`.
    fn cost_with(&mut self, state: &State, bit: usize, v: u32) -> u32 {
        self.image[bit] = v as u8;
        let mut total = 0;
        for (i, item) in self.items.iter().enumerate() {
            self.work += 1;
            let mut cost = state.costs[i];
            if item.affine {
                let vector = item.basis[bit];
                if vector != 0 {
                    let image = v ^ self.image_of(vector & !(1 << bit));
                    if state.spans[i] >> image & 1 == 1 {
                        cost *= 2;
                    }
                }
            } else if item.keys[..item.len].iter().any(|key| key >> bit & 1 == 1) {
                cost = self.points_cost(item, bit + 1);
                self.work += 2 * item.len as u64;
            }
            total += item.weight * cost;
        }
        self.image[bit] = 0;
        total
    }

    /// Units only: 0, or a direction that one bit has so far.
    fn unit_allowed(&self, bit: usize, value: u32) -> bool {
        value == 0
            || value.is_power_of_two()
                && self.image[self.granule..bit]
                    .iter()
                    .filter(|&&v| u32::from(v) == value << self.granule)
                    .count()
                    < 2
    }
}
