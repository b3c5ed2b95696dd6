//! How A, B and C lie on the devices.

use layout_core::CoordLayout;
use layout_core::devices::{Block, Distribution, Redistribution};

use super::error::DevicesError;
use super::program::Operand;
use crate::gemm::Gemm;

/// The distributions of the three matrices of a product, as the product sees them: A m×k, B k×n, C m×n, whatever the transposes.
///
/// ```
/// use tilewright_kernels::devices::Placement;
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
/// let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
/// let moves = placement.movements()?;
/// assert_eq!((moves.a.movement().to_string(), moves.b.movement().to_string()), ("all-gather".into(), "nothing".into()));
/// // The same with a layout: device 1 has the rows from 32 on.
/// let layout = "(2,(32,32)):(32@0,(1@0,1@1)),columns,columns";
/// assert_eq!(Placement::parse(layout, &problem, 2)?.a, placement.a);
/// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// Of A.
    pub a: Distribution,
    /// Of B.
    pub b: Distribution,
    /// Of C: where the result belongs, and where the old C is.
    pub c: Distribution,
}

/// What moves for a product, matrix by matrix. [`Placement`] shows it.
#[derive(Clone, Debug)]
pub struct Movements {
    /// From where A is to where the product reads it.
    pub a: Redistribution,
    /// From where B is to where the product reads it.
    pub b: Redistribution,
    /// From the devices' terms of C to where C belongs.
    pub c: Redistribution,
}

impl Placement {
    /// Three distributions.
    ///
    /// # Errors
    ///
    /// [`DevicesError::Unsupported`] if they are not those of the problem's matrices, on the same number of devices, or one of them is a sum.
    ///
    /// ```
    /// use tilewright_kernels::devices::Placement;
    /// use tilewright_kernels::gemm::{Gemm, Operands};
    /// use layout_core::devices::Distribution;
    ///
    /// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
    /// let [a, b, c] = [[64, 32], [32, 48], [64, 48]];
    /// let of_two = Distribution::columns(b, 2)?;
    /// let error = Placement::new(&problem, Distribution::rows(a, 2)?, of_two, Distribution::columns(c, 4)?).unwrap_err();
    /// assert_eq!(error.to_string(), "A lies on 2 devices and C on 4; give all three matrices the same number");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        problem: &Gemm,
        a: Distribution,
        b: Distribution,
        c: Distribution,
    ) -> Result<Self, DevicesError> {
        problem.validate(u64::MAX)?;
        for (operand, distribution) in [(Operand::A, &a), (Operand::B, &b), (Operand::C, &c)] {
            let (expected, found) = (extents(problem, operand), distribution.extents());
            if expected != found {
                return Err(DevicesError::unsupported(format!(
                    "{operand} is {}x{}, and its distribution is that of a {}x{} matrix",
                    expected[0], expected[1], found[0], found[1]
                )));
            }
            if distribution.devices() != a.devices() {
                return Err(DevicesError::unsupported(format!(
                    "A lies on {} devices and {operand} on {}; give all three matrices the same number",
                    a.devices(),
                    distribution.devices()
                )));
            }
            if distribution.is_sum() {
                return Err(DevicesError::unsupported(format!(
                    "{operand} is given as terms of a sum; a product takes and leaves whole elements"
                )));
            }
        }
        Ok(Self { a, b, c })
    }

    /// Reads `A,B,C`, each one of `rows`, `columns`, `replicas`, `RxC` (blocks on a grid of devices) or a layout (device, local) → (row, column).
    ///
    /// # Errors
    ///
    /// [`DevicesError::Placement`] for other text, and those of [`Placement::new`].
    pub fn parse(text: &str, problem: &Gemm, devices: usize) -> Result<Self, DevicesError> {
        let refuse = |reason: String| DevicesError::Placement {
            text: text.to_owned(),
            reason,
        };
        let parts = split(text);
        let [a, b, c] = parts[..] else {
            return Err(refuse(format!(
                "it has {} part{}; give three, of A, B and C, such as rows,columns,columns",
                parts.len(),
                if parts.len() == 1 { "" } else { "s" }
            )));
        };
        let one = |part: &str, operand| {
            distribution(part, extents(problem, operand), devices).map_err(|e| match e {
                Ok(error) => DevicesError::from(error),
                Err(reason) => refuse(reason),
            })
        };
        let [a, b, c] = [
            one(a, Operand::A)?,
            one(b, Operand::B)?,
            one(c, Operand::C)?,
        ];
        Self::new(problem, a, b, c)
    }

    /// How many devices.
    pub fn devices(&self) -> usize {
        self.a.devices()
    }

    /// Whether each device adds its own part of the sums, so that terms of C move instead of A and B: both factors are cut along k alike.
    ///
    /// ```
    /// use tilewright_kernels::devices::Placement;
    /// use tilewright_kernels::gemm::{Gemm, Operands};
    ///
    /// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
    /// assert!(Placement::parse("columns,rows,rows", &problem, 2)?.sums_move());
    /// assert!(!Placement::parse("columns,columns,rows", &problem, 2)?.sums_move());
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn sums_move(&self) -> bool {
        let k = self.a.extents()[1];
        let mut cut = false;
        let alike = (0..self.devices()).all(|device| {
            let (a, b) = (self.a.indices(device, 1), self.b.indices(device, 0));
            cut |= a.indices() < k;
            a == b
        });
        alike && cut
    }

    /// What moves.
    ///
    /// # Errors
    ///
    /// [`DevicesError::Distribution`] if the algebra has no such redistribution.
    pub fn movements(&self) -> Result<Movements, DevicesError> {
        let [_, k] = self.a.extents();
        let stays = |d: &Distribution| Redistribution::derive(d, d);
        if self.sums_move() {
            let terms = Distribution::product_terms(&self.a, &self.b)?;
            return Ok(Movements {
                a: stays(&self.a)?,
                b: stays(&self.b)?,
                c: Redistribution::derive(&terms, &self.c)?,
            });
        }
        Ok(Movements {
            a: Redistribution::derive(&self.a, &self.c.along(0, k)?)?,
            b: Redistribution::derive(&self.b, &self.c.along(1, k)?)?,
            c: stays(&self.c)?,
        })
    }

    /// What a device has of a matrix, as one rectangle.
    pub(super) fn block(&self, operand: Operand, device: usize) -> Result<Block, DevicesError> {
        let distribution = match operand {
            Operand::A => &self.a,
            Operand::B => &self.b,
            Operand::C => &self.c,
        };
        distribution.shard(device).block().ok_or_else(|| {
            DevicesError::unsupported(format!(
                "device {device} has rows or columns of {operand} that are not a single range ({}); kernels multiply rectangles, so give each \
                 device one, such as rows, columns or a grid",
                distribution.layout()
            ))
        })
    }
}

/// Rows and columns of a matrix of the product.
fn extents(problem: &Gemm, operand: Operand) -> [u64; 2] {
    let Gemm { m, n, k, .. } = *problem;
    match operand {
        Operand::A => [m, k],
        Operand::B => [k, n],
        Operand::C => [m, n],
    }
}

/// The parts between commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i64, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

type Refusal = Result<layout_core::devices::DistributionError, String>;

/// One part of a placement.
fn distribution(part: &str, extents: [u64; 2], devices: usize) -> Result<Distribution, Refusal> {
    let grid = || {
        let (r, c) = part.split_once('x')?;
        Some([r.parse::<usize>().ok()?, c.parse::<usize>().ok()?])
    };
    let made = match part {
        "rows" => Distribution::rows(extents, devices),
        "columns" => Distribution::columns(extents, devices),
        "replicas" => Distribution::replicas(extents, devices),
        _ => {
            if let Some([rows, columns]) = grid() {
                if rows.checked_mul(columns) != Some(devices) {
                    return Err(Err(format!(
                        "a grid of {part} is not one of {devices} devices"
                    )));
                }
                Distribution::grid(extents, [rows, columns])
            } else {
                let layout: CoordLayout = part.parse().map_err(|e| {
                    Err(format!(
                        "`{part}` is neither rows, columns, replicas or RxC nor a layout such as (2,(4,8)):(4@0,(1@0,1@1)) ({e})"
                    ))
                })?;
                let made = Distribution::new(extents, layout).map_err(Ok)?;
                if made.devices() != devices {
                    return Err(Err(format!(
                        "`{part}` is a layout over {} devices, and there are {devices}",
                        made.devices()
                    )));
                }
                Ok(made)
            }
        }
    };
    made.map_err(Ok)
}
