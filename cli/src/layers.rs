//! The products of `bench --set llm`: y = x·wᵀ for layers of four language models and 1 to 8192 tokens.

/// Tokens of a batch, which are the rows of x.
const TOKENS: [u64; 18] = [
    1, 2, 4, 8, 16, 32, 64, 100, 128, 200, 256, 300, 512, 700, 1024, 2048, 4096, 8192,
];

/// n × k of the weights, as the configurations of the models give them: queries, keys and values together, output, gate and up together, down, and a head.
const WEIGHTS: [[u64; 2]; 21] = [
    // Llama 3 8B
    [6144, 4096],
    [4096, 4096],
    [28672, 4096],
    [4096, 14336],
    [128_256, 4096],
    // Llama 3 70B
    [10240, 8192],
    [8192, 8192],
    [57344, 8192],
    [8192, 28672],
    // Qwen 3 32B
    [10240, 5120],
    [5120, 8192],
    [51200, 5120],
    [5120, 25600],
    // DeepSeek V3
    [2112, 7168],
    [24576, 1536],
    [32768, 512],
    [7168, 16384],
    [4096, 7168],
    [7168, 2048],
    [36864, 7168],
    [7168, 18432],
];

/// All products, as m, n, k: layer by layer, by their tokens.
pub(crate) fn products() -> impl Iterator<Item = [u64; 3]> {
    let of_layer = |[n, k]: [u64; 2]| TOKENS.map(|m| [m, n, k]);
    WEIGHTS.into_iter().flat_map(of_layer)
}

/// A part of a set: `2/8` is the second of eight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// Reads `i/n`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(number, of)| {
            Some(Self {
                number: number.parse().ok()?,
                of: of.parse().ok()?,
            })
        });
        parts
            .filter(|part| (1..=part.of).contains(&part.number))
            .ok_or_else(|| "give i/n, such as 2/8, with i from 1 to n".to_owned())
    }

    /// Every n-th, from the i-th on, so that all parts take about as long.
    pub(crate) fn take<T>(self, all: Vec<T>) -> Vec<T> {
        let own = all.into_iter().skip(self.number - 1);
        own.step_by(self.of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_set() {
        let all: Vec<_> = products().collect();
        assert_eq!(all.len(), 18 * 21);
        let mut again: Vec<_> = (1..=5)
            .flat_map(|i| {
                Part::parse(&format!("{i}/5"))
                    .expect("a part")
                    .take(all.clone())
            })
            .collect();
        let mut sorted = all;
        sorted.sort_unstable();
        again.sort_unstable();
        assert_eq!(again, sorted);
        for wrong in ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/2", "a/b"] {
            assert!(Part::parse(wrong).is_err(), "{wrong}");
        }
    }
}
