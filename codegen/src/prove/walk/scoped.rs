//! A table whose changes can be taken back: what one side of a branch changes, the other side does not see.

use std::hash::Hash;

use crate::quick::QuickMap;

/// A table with a log of its changes since the first mark.
pub(in crate::prove) struct Scoped<K, V> {
    now: QuickMap<K, V>,
    /// Keys that were changed, with what they had before.
    log: Vec<(K, Option<V>)>,
    marks: usize,
}

impl<K, V> Default for Scoped<K, V> {
    fn default() -> Self {
        Self {
            now: QuickMap::default(),
            log: Vec::new(),
            marks: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V> Scoped<K, V> {
    pub(in crate::prove) fn get(&self, key: &K) -> Option<&V> {
        self.now.get(key)
    }

    pub(in crate::prove) fn keys(&self) -> impl Iterator<Item = &K> {
        self.now.keys()
    }

    pub(in crate::prove) fn insert(&mut self, key: K, value: V) {
        let before = self.now.insert(key, value);
        self.note(key, before);
    }

    pub(in crate::prove) fn remove(&mut self, key: &K) {
        if let Some(before) = self.now.remove(key) {
            self.note(*key, Some(before));
        }
    }

    fn note(&mut self, key: K, before: Option<V>) {
        if self.marks > 0 {
            self.log.push((key, before));
        }
    }

    /// Begins to note changes, until they are taken back by [`undo`](Self::undo) for the last time.
    pub(in crate::prove) fn mark(&mut self) -> usize {
        self.marks += 1;
        self.log.len()
    }

    /// Takes back what was changed since a mark, and returns it: what changed keys had at the end.
    pub(in crate::prove) fn undo(&mut self, mark: usize) -> QuickMap<K, Option<V>> {
        let mut changed = QuickMap::default();
        for (key, before) in self.log.drain(mark..).rev() {
            let after = match before {
                Some(before) => self.now.insert(key, before),
                None => self.now.remove(&key),
            };
            changed.entry(key).or_insert(after);
        }
        changed
    }

    /// The mark is not needed any more.
    pub(in crate::prove) fn unmark(&mut self) {
        self.marks -= 1;
        if self.marks == 0 {
            self.log.clear();
        }
    }

    /// Forgets everything. Not to be used where a change is to be taken back to a value.
    pub(in crate::prove) fn clear(&mut self) {
        self.now.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Scoped;

    #[test]
    fn what_is_taken_back_was_never_there() {
        let mut table: Scoped<u8, char> = Scoped::default();
        table.insert(1, 'a');
        let outer = table.mark();
        table.insert(1, 'b');
        let inner = table.mark();
        table.insert(1, 'c');
        table.insert(2, 'd');
        table.remove(&1);
        let changed = table.undo(inner);
        assert_eq!((changed[&1], changed[&2]), (None, Some('d')));
        assert_eq!((table.get(&1), table.get(&2)), (Some(&'b'), None));
        table.unmark();
        let changed = table.undo(outer);
        assert_eq!((changed.len(), changed[&1]), (1, Some('b')));
        assert_eq!(table.get(&1), Some(&'a'));
    }
}
