//! The range decoder of LZMA: a stream of bytes as a stream of bits, each with a probability that learns.

/// A probability of one half, in units of 1/2048 for the bit 0.
pub(crate) const EVEN: u16 = 1 << (PRECISION - 1);
/// Bits of a probability.
const PRECISION: u32 = 11;
/// How fast a probability learns: by 1/32 of what is missing.
const RATE: u32 = 5;

/// The bytes that are left and the interval that they point into.
pub(crate) struct Range<'a> {
    left: std::slice::Iter<'a, u8>,
    width: u32,
    code: u32,
}

impl<'a> Range<'a> {
    /// The first byte of a stream is 0, the next four are the first code.
    pub(crate) fn new(stream: &'a [u8]) -> Self {
        let mut range = Self {
            left: stream.iter(),
            width: u32::MAX,
            code: 0,
        };
        for _ in 0..5 {
            range.shift();
        }
        range
    }

    /// A stream that ends early is read on as zeros.
    fn shift(&mut self) {
        self.code = self.code << 8 | u32::from(*self.left.next().unwrap_or(&0));
    }

    fn narrow(&mut self, width: u32) {
        self.width = width;
        if self.width < 1 << 24 {
            self.width <<= 8;
            self.shift();
        }
    }

    /// One bit with its probability of being 0.
    #[inline]
    pub(crate) fn bit(&mut self, probability: &mut u16) -> bool {
        let zeros = (self.width >> PRECISION) * u32::from(*probability);
        if self.code < zeros {
            *probability += ((1 << PRECISION) - *probability) >> RATE;
            self.narrow(zeros);
            false
        } else {
            *probability -= *probability >> RATE;
            self.code -= zeros;
            self.narrow(self.width - zeros);
            true
        }
    }

    /// `bits` bits without probabilities, the highest first.
    pub(crate) fn direct(&mut self, bits: u32) -> usize {
        (0..bits).fold(0, |value, _| {
            let half = self.width >> 1;
            let bit = self.code >= half;
            if bit {
                self.code -= half;
            }
            self.narrow(half);
            value << 1 | usize::from(bit)
        })
    }

    /// A number below the tree's size, a power of two: the highest bit first, each with a probability that depends on those before.
    pub(crate) fn tree(&mut self, tree: &mut [u16]) -> usize {
        let mut node = 1;
        while node < tree.len() {
            node = node << 1 | usize::from(self.bit(&mut tree[node]));
        }
        node - tree.len()
    }

    /// A number of `bits` bits, the lowest first.
    pub(crate) fn reverse_tree(&mut self, tree: &mut [u16], bits: u32) -> usize {
        let (mut node, mut value) = (1, 0);
        for i in 0..bits {
            let bit = usize::from(self.bit(&mut tree[node]));
            node = node << 1 | bit;
            value |= bit << i;
        }
        value
    }
}
