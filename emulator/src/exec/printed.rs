//! What kernels have printed.

use std::ops::Range;

use crate::launch::MAX_PRINTED;

/// The text that one thread's blocks have printed, in the order in which they ran, and which block each part is from.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) text: Vec<u8>,
    parts: Vec<(u64, Range<usize>)>,
}

impl Printed {
    /// What was appended to the text from `start` on is block `block`'s; it is dropped if there was too much already.
    pub(super) fn keep(&mut self, block: u64, start: usize) {
        if start >= MAX_PRINTED {
            self.text.truncate(start);
            return;
        }
        let end = self.text.len();
        match self.parts.last_mut() {
            Some((last, part)) if *last == block => part.end = end,
            _ => self.parts.push((block, start..end)),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let shift = self.text.len();
        self.text.extend_from_slice(&other.text);
        let parts = other.parts.iter();
        let parts = parts.map(|(block, part)| (*block, part.start + shift..part.end + shift));
        self.parts.extend(parts);
    }

    /// Block after block, at most [`MAX_PRINTED`] bytes.
    pub(super) fn finish(mut self) -> String {
        let printed = if self.parts.is_sorted_by_key(|(block, _)| *block) {
            self.text.truncate(MAX_PRINTED);
            self.text
        } else {
            self.parts.sort_by_key(|(block, _)| *block);
            let mut printed = Vec::new();
            for (_, part) in self.parts {
                let room = MAX_PRINTED - printed.len();
                let text = &self.text[part];
                printed.extend_from_slice(&text[..text.len().min(room)]);
            }
            printed
        };
        String::from_utf8(printed)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(to: &mut Printed, block: u64, text: &str) {
        let start = to.text.len();
        to.text.extend_from_slice(text.as_bytes());
        to.keep(block, start);
    }

    #[test]
    fn blocks_follow_each_other_whichever_thread_ran_them() {
        let (mut a, mut b) = (Printed::default(), Printed::default());
        print(&mut a, 0, "a");
        print(&mut a, 3, "d");
        print(&mut b, 1, "b");
        print(&mut b, 1, "B");
        print(&mut b, 2, "c");
        a.merge(&b);
        assert_eq!(a.finish(), "abBcd");
    }

    #[test]
    fn what_is_too_much_is_dropped() {
        let mut a = Printed::default();
        print(&mut a, 0, &"x".repeat(MAX_PRINTED - 1));
        print(&mut a, 1, "yz");
        print(&mut a, 2, "dropped");
        let text = a.finish();
        assert_eq!((text.len(), text.ends_with("xy")), (MAX_PRINTED, true));
    }
}
