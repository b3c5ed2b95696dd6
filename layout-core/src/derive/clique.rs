//! Impossibility: more elements that are asked for together, pairwise, than there are banks.
//!
//! Two units (the narrowest access's width, at least a word) that some translation of some phase asks for together must lie in different
//! bank groups of any conflict-free layout, linear or not. A set of units that are pairwise so related and outnumber the groups is a
//! *clique* that rules every layout out. The relation depends only on the xor of the two positions, so the graph is
//! a Cayley graph and a clique may be taken to contain unit 0.
//!
//! Example: five chunk bits and, as accesses, all ten subsets of three of them. Units are related if they differ in at most
//! three bits; the units 0, 1, 2, 4, 8, 16 and their neighbours make ten pairwise related ones, for eight groups of banks.

use super::certificate::{MAX_WITNESS, Witness};
use super::problem::Problem;
use super::search::word_of;

/// Differences that are kept; more would only find more.
const MAX_DIFFERENCES: usize = 512;
const WORDS: usize = MAX_DIFFERENCES / 64;

/// Nodes of the clique search.
const LIMIT: u32 = 20_000;

type Set = [u64; WORDS];

/// A clique larger than the number of bank groups, if the search finds one.
pub(super) fn witness(problem: &Problem) -> Option<Witness> {
    if !problem.block_is_bank_aligned() {
        return None;
    }
    let unit = problem.phases().iter().map(|p| p.bytes.max(4)).min()?;
    let unit_words = unit.trailing_zeros() - 2;
    let groups = (32 >> unit_words) as usize;
    let mut differences = [0_u32; MAX_DIFFERENCES];
    let mut count = 0;
    for phase in problem.phases() {
        let parts = phase.bytes.max(4) / unit;
        for p in phase.points() {
            for q in phase.points() {
                // Elements of different blocks are related too, but not by an xor of positions.
                if p.0 >> problem.row_bits != q.0 >> problem.row_bits
                    || p.1 >> problem.col_bits != q.1 >> problem.col_bits
                {
                    continue;
                }
                let between = (word_of(problem, p) ^ word_of(problem, q)) >> unit_words;
                for part in 0..parts {
                    let d = between ^ part;
                    if d != 0 && count < MAX_DIFFERENCES && !differences[..count].contains(&d) {
                        differences[count] = d;
                        count += 1;
                    }
                }
            }
        }
    }
    if count < groups {
        return None;
    }
    let differences = &mut differences[..count];
    differences.sort_unstable();
    let mut search = Search {
        differences,
        clique: [0; MAX_WITNESS],
        wanted: groups + 1,
        nodes: 0,
    };
    let mut all = [0; WORDS];
    for i in 0..count {
        all[i / 64] |= 1 << (i % 64);
    }
    if !search.extend(1, &all) {
        return None;
    }
    let len = search.wanted;
    let mut elements = [(0, 0); MAX_WITNESS];
    for (slot, &at) in elements.iter_mut().zip(&search.clique[..len]) {
        let word = at << unit_words;
        let x = if problem.log_elem < 2 {
            word << (2 - problem.log_elem)
        } else {
            word >> (problem.log_elem - 2)
        };
        *slot = (x >> problem.col_bits, x & ((1 << problem.col_bits) - 1));
    }
    Some(Witness {
        elements,
        len,
        groups: groups as u32,
        unit_bytes: unit,
    })
}

struct Search<'a> {
    differences: &'a [u32],
    clique: [u32; MAX_WITNESS],
    wanted: usize,
    nodes: u32,
}

impl Search<'_> {
    fn related(&self, a: u32, b: u32) -> bool {
        self.differences.binary_search(&(a ^ b)).is_ok()
    }

    /// Extends the clique of `len` units (unit 0 first) by some of `among`.
    fn extend(&mut self, len: usize, among: &Set) -> bool {
        if len == self.wanted {
            return true;
        }
        let mut rest = *among;
        loop {
            let left: u32 = rest.iter().map(|w| w.count_ones()).sum();
            self.nodes += 1;
            if len + (left as usize) < self.wanted || self.nodes > LIMIT {
                return false;
            }
            let Some(word) = rest.iter().position(|&w| w != 0) else {
                return false;
            };
            let i = word * 64 + rest[word].trailing_zeros() as usize;
            rest[word] &= rest[word] - 1;
            let chosen = self.differences[i];
            let mut next = [0; WORDS];
            for (w, &bits) in rest.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let j = w * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    if self.related(chosen, self.differences[j]) {
                        next[w] |= 1 << (j % 64);
                    }
                }
            }
            self.clique[len] = chosen;
            if self.extend(len + 1, &next) {
                return true;
            }
        }
    }
}
