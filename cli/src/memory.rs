//! Whether a product and its check fit into the host's memory: asked before anything is allocated.

use tilewright::codegen::gemm::{DataType, Gemm};

use crate::error::CliError;

/// An operand's elements: those of one matrix, and of all with what lies between them; and the bytes of each.
struct Elements {
    one: u128,
    all: u128,
    bytes: u128,
}

/// A, B and C.
fn operands(problem: &Gemm, data_type: DataType) -> [Elements; 3] {
    let (operand, result) = (data_type.bytes(), problem.result(data_type).bytes());
    let [stride_a, stride_b, stride_c] = problem.batch.strides;
    [
        (problem.stored_a(), problem.lda, stride_a, operand),
        (problem.stored_b(), problem.ldb, stride_b, operand),
        ((problem.m, problem.n), problem.ldc, stride_c, result),
    ]
    .map(|((rows, cols), ld, stride, bytes)| {
        let none = rows == 0 || cols == 0 || problem.batch.count == 0;
        let one = if none {
            0
        } else {
            u128::from(rows - 1) * u128::from(ld) + u128::from(cols)
        };
        let others = u128::from(problem.batch.count.saturating_sub(1)) * u128::from(stride);
        Elements {
            one,
            all: if none { 0 } else { one.saturating_add(others) },
            bytes: bytes.into(),
        }
    })
}

/// A product that is run and compared whole, with a workspace of so many bytes.
pub(crate) fn for_all(problem: &Gemm, data_type: DataType, workspace: u64) -> Result<(), CliError> {
    // An element lies in memory three times (input, device, result), and for the check the elements of one product of a batch in
    // double precision up to four times, once of them as the absolute value. On the emulator the workspace is filled first.
    let needed = operands(problem, data_type).into_iter().map(|o| {
        o.all
            .saturating_mul(3 * o.bytes)
            .saturating_add(o.one.saturating_mul(4 * 8))
    });
    free_for(needed.fold(u128::from(workspace) * 2, u128::saturating_add))
}

/// A product that runs on a GPU and of which a few rows are compared.
pub(crate) fn for_rows(problem: &Gemm, data_type: DataType) -> Result<(), CliError> {
    // Twice as they are, and B in double precision.
    let all = operands(problem, data_type);
    let needed = all.iter().map(|o| o.all.saturating_mul(2 * o.bytes));
    let reference = all[1].one.saturating_mul(4 * 8);
    free_for(needed.fold(reference, u128::saturating_add))
}

fn free_for(needed: u128) -> Result<(), CliError> {
    let free = u128::from(free_memory());
    if needed <= free {
        return Ok(());
    }
    Err(CliError::new(
        "too_large",
        format!(
            "the matrices and their check would take {} GiB of memory, and {} GiB are free",
            needed.div_ceil(1 << 30),
            free >> 30
        ),
    ))
}

/// Bytes of memory that may be used, where the system tells it in a file, else 16 GiB.
fn free_memory() -> u64 {
    let known = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text
                .lines()
                .find(|line| line.starts_with("MemAvailable:"))?;
            let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(kibibytes << 10)
        });
    known.unwrap_or(16 << 30)
}

#[cfg(test)]
mod tests {
    use tilewright::codegen::gemm::Operands;

    use super::*;

    #[test]
    fn what_no_machine_holds_is_refused() {
        let square = |n: u64| Gemm::packed(n, n, 64, Operands::ALL[0]);
        assert!(for_rows(&square(64), DataType::F16).is_ok());
        assert!(for_all(&square(0), DataType::F16, 0).is_ok());
        let error = for_rows(&square(1_000_000_000), DataType::F16).expect_err("2 EiB");
        assert_eq!(error.code(), "too_large");
        assert!(for_all(&square(u64::MAX), DataType::F64, u64::MAX).is_err());
    }
}
